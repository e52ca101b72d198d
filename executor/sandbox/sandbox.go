// Package sandbox runs scripts behind walls that the Linux kernel holds, and
// proves at start that they stand. It needs no root, no helper program on disk
// and no hook in the host's main function.
//
// Start with [New], which fails where a wall cannot stand and says which and what
// to do. [Executor.Posture] lists the walls with their proofs.
//
// # What a script has
//
// Its skill in /skill, its working directory: a private copy. /inputs and
// /outputs, which are inputs/ and outputs/ there too; /tmp with HOME below it;
// the host's programs, or a runtime's in their place, for reading. All that it can write is thrown away with it,
// but for what is collected. There are no devices but five, no processes but its
// own, no network or a loopback of its own, no other user, and no way to become one.
//
// # How a box is made
//
// The host never runs between fork and exec, and the box's first process is never
// a copy of the host's memory. The host writes a program, a list of raw system
// calls with their data (see program.go), into a sealed piece of memory, and
// starts a static executable of 600 bytes from another (init/amd64.s), which
// makes these calls one after the other. There are two programs: that of the box,
// and that of the call, which the box waits for and is handed together with the
// script's streams. So a box can be made before its call is known (ahead.go), for a
// tenant and in a cgroup of its; it serves one call like any other. Three
// processes run them:
//
//   - The first enters the cgroups, as root becomes a user that nobody else is,
//     makes a user namespace with one identity in it, starts the second in the
//     other new namespaces, as a child of the host, and ends.
//   - The second is the first process in the box. It builds a root from nothing,
//     leaves the host's root, gives up new privileges, and takes the call. It lays
//     out the files, which are data of the call's program, and gives up every right
//     that is left: capabilities, files outside (Landlock), system calls (seccomp).
//     Then it starts the third. It stays, hidden, reaps what is left over, and tells
//     the host how the script ended. With it ends, by the kernel's own rule, every
//     process in the box.
//   - The third waits. The host looks at it from outside (inspect.go): identity,
//     capabilities, filter, namespaces, mounts, cgroups, descriptors, limits. Only
//     if all is as it must be does the host let it become the interpreter; the
//     digest of what was seen is part of the result.
//
// A step that fails is named, with what to do. The host resolves no path that a
// script could have made: before the script starts it opens the folders of the
// run, and reads them through these descriptors when the last process is gone.
//
// # What is not held
//
// The kernel is shared, and so are the pages of the host's programs: scripts of
// tenants that are each other's enemies need a higher tier. Where no cgroup can be
// had, memory is limited for each process and not for the run; the posture says
// so. A host that is not root shares its identity with the script as the kernel
// sees it, though not as the script does; then the namespaces alone keep them
// apart.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/image"
)

// Name is the executor's name in a posture.
const Name = "sandbox"

// Profile is the name of the set of walls, as the log writes it. It changes
// whenever they do.
const Profile = "sb-linux/1"

// Defaults of a [Config].
const (
	DefaultSpace      = 64 << 20
	DefaultProcessors = 1.0
	DefaultAhead      = 4
)

// Config says how an [Executor] works. The zero Config is ready to use.
type Config struct {
	// Runtime is an absolute path: the folder in which the executor marks that it
	// lives, so that the next one finds what a dead one left. It is made when it is
	// not there, and must belong to the host's user and be private (mode 0700).
	// Executors of several processes may share it. Empty: as for a process executor.
	Runtime string

	// Folders are further folders of the host that scripts can read and run programs
	// from, such as "/opt/venv". Each is an absolute path without links in it. The
	// folders of programs (/usr and those that belong to it) are always there.
	Folders []string

	// Images keeps the runtimes that interpreters may lie in. Nil: those of the host
	// alone are started.
	Images *image.Store

	// Names returns what the runtimes in Images are called. It is asked when a script
	// failed for want of a package, so that a note can name the runtimes that have it;
	// two seconds are waited for it. It must be safe for concurrent use. Nil, or an
	// error: the note names none.
	Names func(context.Context) (map[string]bundle.Digest, error)

	// Space is how many bytes a script may write in all: files below /skill, /inputs,
	// /outputs, /tmp and /dev/shm, beyond those laid out. It never is more than half
	// of the memory that the files leave, and at least twice what may be collected.
	// Zero: 64 MiB.
	Space int64

	// Processors is how many processors' time a run may take, where a cgroup can hold
	// that. Zero: 1.
	Processors float64

	// DiskRate is how many bytes a run may read from each disk that its programs lie
	// on, those of runtimes too, and write to it, in a second: a script that reads
	// all of them makes others wait. What it writes lies in memory. It needs a
	// cgroup; where it cannot be held, New fails. Zero: no limit.
	DiskRate int64

	// Ahead is how many boxes at most may be made before their call comes, half of
	// them for one tenant. One is made when a tenant has had two calls of the same
	// limits within half a minute, serves the next, and waits for it so long at most.
	// While it waits it is a process and a cgroup of the tenant's, with half a MiB of
	// memory, and five descriptors of the host. Zero: 4. Negative: none.
	Ahead int

	// Logger gets what an operator should know and no run's result can say, such as
	// what stands behind the digest of a posture. Nil: nobody does.
	Logger *slog.Logger
}

// ErrClosed is wrapped by the error of a run after Close. It wraps
// executor.ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: the executor was closed", executor.ErrUnavailable)

// ErrWall is wrapped by the error for a wall that cannot stand on this host.
var ErrWall = errors.New("sandbox: a wall cannot stand on this host")

// A StepError says at which step a box could not be set up.
type StepError struct {
	Step   string // such as "making a user namespace"
	Err    error
	Remedy string // what to do; empty: nothing is known
}

// Error names the step and the remedy.
func (e *StepError) Error() string {
	s := fmt.Sprintf("%s: %v", e.Step, e.Err)
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Unwrap returns what was wrong.
func (e *StepError) Unwrap() error { return e.Err }
