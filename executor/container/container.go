// Package container runs scripts in containers that an OCI runtime makes: crun, runc,
// or runsc, that of gVisor. Start with [New], which fails where a wall cannot stand
// and says which and what to do. [Executor.Posture] lists the walls with their
// proofs.
//
// # What a script has
//
// What it has in a sandbox (package sandbox): its skill in /skill, /inputs and
// /outputs, /tmp with HOME below it, the host's programs or a runtime's for reading,
// no network, no rights, and no process but its own. The system calls that it may
// make are the same.
//
// # How a container is made
//
// Each run has a mount namespace of the host's own making, which only one thread of
// the host and the OCI runtime are in. There the host makes, with descriptors and
// never by a path that a script could have made, all that the container shows: its
// root, the programs, a file system of a fixed size with the files of the run, and
// beside them the bundle and the OCI runtime's own state. Nothing of it is to be
// seen elsewhere, and all goes with the last process, also where the host is
// killed. Cgroups are the host's affair as well: the OCI runtime starts in those of
// the run and can change none.
//
// The container's first process is ours (init/amd64.s). It takes the filter of
// system calls, tells the host, and waits. The host looks at it from outside, and
// only if all is as it must be lets it start the script. It reaps, and says how the script ended: by which exit code or signal.
//
// Results are read through descriptors that the host had before the container was
// there.
//
// # gVisor
//
// A container of gVisor has a kernel of its own, a process of the host without rights,
// whose tier is "kernel". The container's first process takes the same filter in it,
// and the host looks at that kernel from outside before each run. It is in the cgroups
// of the run and its memory counts there, some 40 MiB of it before the script. What a
// script sees of the kernel, in /proc and /dev, is that kernel's.
//
// # What is not held
//
// The kernel is shared, but with gVisor. The host must be root, or root of a user
// namespace that has identities to give away, as an ordinary user with subordinate ones
// can have it: a container needs two that own nothing. Other users' scripts run in the
// sandbox, which needs no rights.
package container

import (
	"errors"
	"fmt"
	"log/slog"

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

// Config says how an [Executor] works. Engine is required.
type Config struct {
	// Engine is the absolute path of the OCI runtime: crun, runc or runsc.
	Engine string

	// Runtime is an absolute path: the folder in which the executor marks that it
	// lives, so that the next one finds what a dead one left. It is made when it is
	// not there, and must belong to the host's user and be private (mode 0700).
	// Executors of several processes may share it. Empty: as for a process executor.
	Runtime string

	// Folders are further folders of the host that scripts can read and run programs
	// from, such as "/opt/venv". Each is an absolute path without links in it.
	Folders []string

	// Images keeps the runtimes that interpreters may lie in. Nil: those of the host
	// alone are started.
	Images *image.Store

	// Space is how many bytes a script may write in all below /skill, /inputs,
	// /outputs and /tmp, beyond the files laid out; below /dev/shm it may write a
	// quarter of that. It never is more than half of the memory that the files leave,
	// and at least twice what may be collected. Zero: 64 MiB.
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

// ErrWall is wrapped by the error for a wall that cannot stand on this host.
var ErrWall = errors.New("container: a wall cannot stand on this host")

// ErrEngine is wrapped by the error of a run whose OCI runtime failed before the
// script was started, together with executor.ErrUnavailable, and of one whose
// container ended without a word.
var ErrEngine = errors.New("container: the OCI runtime failed")

// errClosing is why runs end that are under way when Close is called.
var errClosing = errors.New("container: the executor was closed while the script ran")
