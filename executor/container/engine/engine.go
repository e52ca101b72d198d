// Package engine runs scripts in containers of an engine that speaks the HTTP
// interface of Docker: Docker itself, or Podman. Start with [New], which fails where a
// wall cannot stand and says which and what to do. [Executor.Posture] lists the walls
// with their proofs.
//
// # What a script has
//
// What it has in a container of package container: its skill in /skill, /inputs and
// /outputs, /tmp with HOME below it, a runtime's programs for reading, no network, no
// rights. The system calls that it may make are the same.
//
// # How a container is made
//
// Nothing of the host is shown in it, and the engine never fetches anything. A runtime
// of the image store is brought into the engine once, under its digest, before any run.
// Its files, a few of our own and our first process (init/amd64.s) are the container's
// root, which nobody may write to. All else lies in file systems in memory.
//
// The first process makes the system calls that the host asks for on its standard
// input: it lays out the files of the run, looks at the walls, takes the filter of
// system calls, and starts the script, whose output is the container's. When the script
// has ended, it stops what is left, and writes a word that only the host and it know
// behind the last byte of each stream. What it writes then is its own: how the script
// ended, and the files that are collected. So the host resolves no path at all.
// Where nobody stops a script, its first process does, a little after its time.
//
// # What is not held
//
// The kernel is shared, and so are the pages of a runtime's files. The engine is
// trusted, and so is whoever may talk to it. Whether a container has a user namespace
// of its own is the engine's affair: the posture says what it told. A script sees where
// the engine keeps its files (/proc/self/mountinfo), its own cgroups, and in Docker's
// containers our first process; what else /proc and /sys tell of a host is empty there,
// or not there. The number of files is limited by their memory alone with Podman.
package engine

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/image"
)

// Name is the executor's name in a posture.
const Name = "container"

// Defaults of a [Config].
const (
	DefaultSpace      = 64 << 20
	DefaultProcessors = 1.0
)

// Config says how an [Executor] works. Address and Images are required.
type Config struct {
	// Address is where the engine listens: "unix://" and an absolute path.
	Address string

	// Runtime is an absolute path: the folder in which the executor marks that it
	// lives, so that the next one finds what a dead one left in the engine. It is made
	// when it is not there, and must belong to the host's user and be private (mode
	// 0700). Executors of several processes may share it. Empty: as for a process
	// executor.
	Runtime string

	// Images keeps the runtimes that interpreters lie in: a container shows no program
	// of the host.
	Images *image.Store

	// Ready are the runtimes that New brings into the engine. Another one is brought
	// there when a run asks for it, which is refused until that is done.
	Ready []bundle.Digest

	// Space is how many bytes a script may write in /skill, as many in /inputs and
	// /outputs together, and in /tmp, beyond the files laid out; below /dev/shm it may
	// write a quarter of that. It never is more than half of the memory that the files leave, and at least
	// twice what may be collected. Zero: 64 MiB.
	Space int64

	// Processors is how many processors' time a run may take. Zero: 1.
	Processors float64

	// Logger gets what an operator should know and no run's result can say. Nil:
	// nobody does.
	Logger *slog.Logger
}

// ErrClosed is wrapped by the error of a run after Close. It wraps
// executor.ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: the executor was closed", executor.ErrUnavailable)

// ErrWall is wrapped by the error for a wall that cannot stand with this engine.
var ErrWall = errors.New("engine: a wall cannot stand in its containers")

// ErrEngine is wrapped by the error of a run whose engine failed, hung, was gone, or
// answered what it never answers: together with executor.ErrUnavailable before the
// script was started, and with executor.ErrUnknown after that.
var ErrEngine = errors.New("engine: the container engine failed")

// ErrImage is wrapped, together with executor.ErrUnavailable, by the error of a run
// whose runtime is not in the engine. It is brought there meanwhile; the same call is
// worth another try.
var ErrImage = errors.New("engine: the runtime is not in the container engine yet")

// errClosing is why runs end that are under way when Close is called.
var errClosing = errors.New("engine: the executor was closed while the script ran")
