// Package microvm runs each script in a virtual machine of its own: a small one, with
// its own kernel, that is started for the run and is gone with it. Start with [New],
// which fails where a wall cannot stand and says which and what to do; what a machine
// boots from is made beforehand, see package kit. [Executor.Posture] lists the walls
// with their proofs.
//
// # What a script has
//
// What it has in a sandbox (package sandbox) with a runtime: its skill in /skill,
// /inputs and /outputs, /tmp with HOME below it, the runtime's programs for reading, no
// network, no rights, and no process but its own. The system calls that it may make are
// the same. Its interpreter lies in a runtime: a machine has nothing of the host's.
//
// # How a machine is made
//
// It has a kernel, a disk that cannot be written to (the runtime), memory, one or more
// processors and a serial port; there is no network device, no firmware, no other disk,
// no clock. What the script writes lies in the machine's memory.
//
// The first process in it is ours (package agent). It takes one order over the port:
// all files, of which it holds that they have the digest that was granted, and what to
// start; it starts that behind walls of its own, sends what comes of it, and lists what
// the script left. The host asks for the files that it wants. It holds every byte from
// a machine for a stranger's (package frame): also one that a script has taken over can
// say nothing but output, an ending and files, within the limits of the run.
//
// A machine is not booted for each run, where that can be had: one was booted until it
// waited for an order, with its interpreter in memory, and saved; that of a run is a
// private copy, which is told the time and given chance of its own before anything else,
// serves this run, and is thrown away. What is saved is named by all that it was made with,
// and held against its digest. For tenants that call often some are restored before their
// call comes, and Python or Node.js is started in them and waits for the script: with the
// limits and the fixed variables of the tenant's last run, and chance of its own.
//
// The program that makes the machine (the monitor: QEMU) is confined as a script would
// be, since a script that leaves its machine is in it: a user that nobody else is, no
// rights and no way to them, namespaces of its own without a network, cgroups of the
// run, files that it may only read (Landlock), its own filter of system calls, and no
// descriptors but the machine's. Before a machine is told anything of a script, the
// monitor is looked at from outside.
//
// A machine is killed from outside: at the timeout, at a cancellation, and at the end of
// each run. It dies with the host, too. What a script wrote goes with it; so a run that
// was stopped has output and no files.
//
// A machine that does not come up is killed and counted, and another one is started, as
// long as nothing was sent. A run is never tried again.
//
// # What is not held
//
// Where the processor cannot run the machine (KVM), the monitor interprets it: more than
// ten times slower, and the wall between the script and the monitor is the monitor's own
// code and not the processor's. The posture says which it is. The host must have an
// x86-64 processor, and be root, or root of a user namespace that has identities to give
// away, as an ordinary user with subordinate ones can have it: the monitor of each machine
// needs one that owns nothing. Machines of one saved machine have what the kernel chose at
// its boot alike, such as where it lies in memory, and share the pages that none changed;
// where that matters, see Config.Snapshots.
package microvm

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/image"
)

// Name is the executor's name in a posture.
const Name = "microvm"

// Defaults of a [Config].
const (
	DefaultMonitor    = "/usr/bin/qemu-system-x86_64"
	DefaultSpace      = 64 << 20
	DefaultProcessors = 1.0
	DefaultBootTime   = 2 * time.Minute
	DefaultSnapshots  = 2 << 30
	DefaultAhead      = 2
	DefaultAheadBytes = 2 << 30
)

// Config says how an [Executor] works. Kit and Images are required.
type Config struct {
	// Kit is the folder with what a machine boots from: see package kit.
	Kit string

	// Images keeps the runtimes, whose disks the kit has. Nil: nothing can be run.
	Images *image.Store

	// Monitor is the absolute path of QEMU for x86-64. Empty: [DefaultMonitor].
	Monitor string

	// Runtime is an absolute path: the folder in which the executor marks that it
	// lives, so that the next one finds what a dead one left. It is made when it is
	// not there, and must belong to the host's user and be private (mode 0700).
	// Executors of several processes may share it. Empty: as for a process executor.
	Runtime string

	// Space is how many bytes a script may write in all below /skill, /inputs,
	// /outputs and /tmp, beyond the files laid out; below /dev/shm it may write a
	// quarter of that. It never is more than half of the memory, and at least twice
	// what may be collected. Zero: 64 MiB.
	Space int64

	// Processors is how many processors' time a machine may take. Zero: 1.
	Processors float64

	// BootTime is how long a machine may take until its agent is heard; one that is
	// restored, a quarter of it. Zero: 2 min.
	BootTime time.Duration

	// Snapshots is how many bytes of the disk saved machines may take, in a folder of
	// the kit's. Zero: 2 GiB. Negative: none is saved, and each machine is booted.
	Snapshots int64

	// Ahead is how many machines are restored before their call comes, for tenants
	// that call often: half of them at most, but one, for one tenant. Zero: 2.
	// Negative: none.
	Ahead int

	// AheadBytes is how much memory these may take together, if each takes all that
	// it may; what one takes that waits is a small part of that. Zero: 2 GiB.
	AheadBytes int64

	// Logger gets what an operator should know and no run's result can say. Nil:
	// nobody does.
	Logger *slog.Logger
}

// ErrClosed is wrapped by the error of a run after Close. It wraps
// executor.ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: the executor was closed", executor.ErrUnavailable)

// ErrWall is wrapped by the error for a wall that cannot stand on this host.
var ErrWall = errors.New("microvm: a wall cannot stand on this host")

// ErrMonitor is wrapped by the error for a monitor that is not there, or is none that
// this executor drives.
var ErrMonitor = errors.New("microvm: the monitor cannot be used")

// ErrMachine is wrapped by the error of a run whose machine failed: before the script
// began together with executor.ErrUnavailable; else it is a failed run.
var ErrMachine = errors.New("microvm: the machine failed")

// errClosing is why runs end that are under way when Close is called.
var errClosing = errors.New("microvm: the executor was closed while the script ran")
