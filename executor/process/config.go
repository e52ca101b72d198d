// Package process runs scripts as plain processes of the host's user.
//
// It lays a script's files out in a private folder, builds the environment from
// empty, captures the output, stops every process of a run at its end and leaves
// nothing behind. It does not wall a script off: a script may read what the
// host's user may read, and use the network. [Executor.Posture] says so, wall by
// wall. Use it where scripts are trusted as far as the host's user is.
//
// Start with [New].
package process

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/tracon-go/tracon/executor"
)

// Name is the executor's name in a posture.
const Name = "process"

// Config says how an [Executor] works. The zero Config is ready to use.
type Config struct {
	// Runtime is an absolute path: the folder below which runs are staged. It is
	// made when it is not there, and must belong to the host's user and be private
	// (mode 0700). Executors of several processes may share it. In memory, a run of
	// a small skill takes a fraction of the time. Empty: "tracon" in the user's
	// runtime folder (XDG_RUNTIME_DIR), else "tracon-UID" in TMPDIR where that is
	// set, else in /dev/shm where that is fit for it, else in /tmp.
	Runtime string

	// NoCgroup keeps runs out of cgroups of their own. Processes that leave their
	// session are then found by their environment and their working directory
	// alone. Without it a cgroup is used where one can be had.
	NoCgroup bool

	// Logger gets what an operator should know and no run's result can say, such as
	// leftovers that could not be removed. Nil: nobody does.
	Logger *slog.Logger
}

// ErrClosed is wrapped by the error of a run after Close. It wraps
// executor.ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: the executor was closed", executor.ErrUnavailable)

// errClosing is why runs end that are under way when Close is called.
var errClosing = errors.New("process: the executor was closed while the script ran")
