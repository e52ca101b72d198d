//go:build linux && amd64

package microvm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/calls"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// An Executor runs scripts in virtual machines. Make one with [New]. It is safe for
// concurrent use.
type Executor struct {
	log        *slog.Logger
	config     Config
	monitor    monitor
	kit        *kit.Kit
	filter     []byte // of system calls within a machine
	counter    int    // how many thousands the processor's counter counts in a second
	accelerate bool   // machines are run by the processor
	restores   bool   // they are restored of saved ones
	instance   *box.Instance
	limits     *box.Means
	ids        *box.Identities
	posture    executor.Posture
	underWay   *box.UnderWay
	hung       atomic.Int64
	processor  bundle.Digest // of which kind it is
	// restoreTime is how long a machine may take until it has answered after it was
	// restored.
	restoreTime time.Duration
	saved       cache
	ahead       ahead

	interpreters interpreter.Opener

	mu      sync.Mutex
	images  map[bundle.Digest]*image.Image // held until Close
	seen    map[bundle.Digest]bool         // the postures that the log knows
	known   program
	reasons []string // why machines were booted, as the log knows
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// New returns an Executor. It removes what dead processes left in the same runtime
// folder, and starts a machine to prove what [Executor.Posture] says.
//
// # Errors
//
// One that wraps ErrWall and names the wall and the remedy where one cannot stand:
// there is no way to run with less. One that wraps ErrMonitor where that is not there
// or is none that this executor drives; ErrMachine where its machine does not come up;
// kit.ErrNotPrepared or kit.ErrChanged for what machines boot from.
func New(c Config) (e *Executor, err error) {
	if c.Space < 0 || c.Processors < 0 || c.BootTime < 0 || c.AheadBytes < 0 {
		return nil, errors.New("microvm: a negative limit")
	}
	c.Space, c.Processors = cmp.Or(c.Space, DefaultSpace), cmp.Or(c.Processors, DefaultProcessors)
	c.Snapshots, c.Ahead, c.AheadBytes = cmp.Or(c.Snapshots, DefaultSnapshots), cmp.Or(c.Ahead, DefaultAhead), cmp.Or(c.AheadBytes, DefaultAheadBytes)
	c.BootTime, c.Monitor = cmp.Or(c.BootTime, DefaultBootTime), cmp.Or(c.Monitor, DefaultMonitor)
	opened := &Executor{
		log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), config: c, filter: calls.Base(calls.NoFamily).Filter(),
		images: map[bundle.Digest]*image.Image{}, seen: map[bundle.Digest]bool{}, underWay: box.NewUnderWay(ErrClosed, errClosing),
	}
	e = opened
	e.restoreTime = c.BootTime / 4
	e.ahead = ahead{
		most: c.Ahead, memory: c.AheadBytes, lasts: aheadTime, raze: e.raze, busy: func() bool { return e.underWay.Count() > runtime.NumCPU() },
		make: func(s size) (*vm, error) { return e.readied(e.underWay.Closing(), s) },
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
			e = nil
		}
	}()
	if os.Geteuid() != 0 {
		return e, fmt.Errorf("%w: the host is not root, and cannot give each machine a user of its own; run it as root, be it of a user namespace with subordinate identities (unshare --mount --map-root-user --map-auto tracon …, with /etc/subuid and /etc/subgid), or take the executor sandbox, which needs no rights", ErrWall)
	}
	q, err := openQEMU(c.Monitor)
	if err != nil {
		return e, err
	}
	e.monitor = q
	if e.kit, err = kit.Open(c.Kit); err != nil {
		return e, fmt.Errorf("microvm: %w", err)
	}
	if e.ids, err = box.FindIdentities(); err != nil {
		return e, fmt.Errorf("%w: %w", ErrWall, err)
	}
	e.counter = counterRate()
	instance, warning, err := box.OpenInstance(cmp.Or(c.Runtime, box.DefaultRuntime()), box.Sweep(e.log))
	if warning != nil {
		e.log.Warn("leftovers of a dead process were not removed", "err", warning)
	}
	if err != nil {
		return e, fmt.Errorf("microvm: %w", err)
	}
	e.instance = instance
	e.limits = box.OpenMeans(instance.Name(), box.Limits{Processors: c.Processors})
	if !e.limits.HoldsMemory() || !e.limits.HoldsProcesses() || !e.limits.HoldsCPU() {
		return e, fmt.Errorf("%w: no cgroup limits memory, processes and processor time: %w; give the service a part of the cgroup tree (systemd: Delegate=yes and DelegateSubgroup=)", ErrWall, e.limits.Err)
	}
	if e.processor, err = processorKind(); err != nil {
		return e, fmt.Errorf("microvm: %w", err)
	}
	e.openSnapshots()
	return e, e.prove()
}

// prove starts a machine with the processor's help, where there is any, and else without;
// looks at it; and makes the posture of what it saw.
func (e *Executor) prove() error {
	try := func(accelerate bool) error {
		ctx := e.underWay.Closing()
		s := size{tenant: "probe", memory: sizeStep, accelerate: accelerate}
		if accelerate { // one that hangs then will not come up at all
			v, err := e.bootOnce(ctx, s, nil)
			if err != nil {
				return err
			}
			e.raze(v)
		}
		v, err := e.up(ctx, s)
		if err != nil {
			return err
		}
		defer e.raze(v)
		e.restores = !v.from.IsZero()
		ctx, cancel := context.WithTimeout(ctx, e.config.BootTime)
		defer cancel()
		got, err := e.monitor.accelerated(ctx, &v.control)
		if err == nil && got != accelerate {
			err = fmt.Errorf("%w: it is accelerated: %t", ErrMachine, got)
		}
		return err
	}
	defer e.saved.clear() // no run needs this one
	why := unix.Access(kvmPath, unix.R_OK|unix.W_OK)
	if why == nil {
		if why = try(true); why == nil {
			e.accelerate = true
		}
	}
	if !e.accelerate {
		e.log.Warn("machines are interpreted, which takes more than ten times as long: the processor cannot run them", "err", why)
		if err := try(false); err != nil {
			if errors.Is(err, errNotAsItMustBe) {
				return fmt.Errorf("%w: %w", ErrWall, err)
			}
			return err
		}
	}
	e.posture = executor.Posture{Executor: Name, Tier: grant.VM, Walls: e.walls(why)}
	return nil
}

func (e *Executor) walls(interpreted error) []executor.Wall {
	by := e.monitor.describe()
	stands := func(name, proof string) executor.Wall {
		return executor.Wall{Name: name, Stands: true, Proof: proof}
	}
	machine := "a machine of " + by + " came up with the processor's help (KVM)"
	if !e.accelerate {
		machine = fmt.Sprintf("a machine of %s came up, interpreted by it (TCG): the processor cannot run it (%v)", by, interpreted)
	}
	switch {
	case e.restores:
		machine += " of a saved one, as that of a run will be"
	case e.saved.store == nil:
		machine += "; none is saved, and each is booted, which takes longer"
	default:
		machine += "; it could not be saved and restored: each is booted, which takes longer (the log says why)"
	}
	const outside = "each run's monitor is seen from outside before its machine is told anything"
	return []executor.Wall{
		stands("kernel", machine+"; each run has one of its own, and with it a kernel"),
		stands("files", "a machine has the disk of a runtime, which cannot be written to, and no other; its monitor may only read that, the kernel and its own programs (Landlock)"),
		stands("network", "a machine has no network device, and its monitor a network namespace of its own; "+outside),
		stands("other processes", "a machine has its own alone, and its monitor a process namespace; "+outside),
		stands("privileges", "a script has no capability and can gain none; its machine's monitor is a user that nobody else is, with no capability; "+outside),
		stands("system calls", fmt.Sprintf("within a machine a script has a filter of %d instructions, and reaches no kernel but the machine's; the monitor has its own filter; %s", len(e.filter)/8, outside)),
		stands("memory", "a machine has a fixed size, within it a cgroup limits the script, and a cgroup limits its monitor"),
		stands("processes", "a cgroup within the machine limits them, and one its monitor"),
		stands("processor time", "each run's cgroup limits it"),
		stands("cleanup", "a machine is killed with its monitor when its run ends, and all that the script wrote is gone with it"),
	}
}

// Posture says which walls stand. It was proved by [New].
func (e *Executor) Posture(context.Context) (executor.Posture, error) { return e.posture, nil }

// Close stops the runs that are under way, which then end with an error, waits for
// them, and leaves nothing. Later runs fail with ErrClosed. It may be called again.
func (e *Executor) Close() error {
	if !e.underWay.Close() {
		return nil
	}
	e.ahead.close()
	e.saved.clear()
	err := e.limits.Close()
	if e.kit != nil {
		e.kit.Close()
	}
	for _, i := range e.images {
		err = errors.Join(err, i.Close())
	}
	if e.instance != nil {
		err = errors.Join(err, e.instance.Close())
	}
	return err
}

// image returns the runtime that the interpreter lies in, when that has the interpreter
// that was probed. It is held until Close, so that nobody removes it meanwhile.
func (e *Executor) image(in gate.Interpreter) (*image.Image, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of := e.images[in.Image]
	if of == nil {
		if e.config.Images == nil {
			return nil, errors.New("this executor was given no runtimes")
		}
		var err error
		if of, err = e.config.Images.Image(in.Image); err != nil {
			return nil, err
		}
		e.images[in.Image] = of
	}
	f, err := e.interpreters.OpenInside(of, in)
	if err != nil {
		return nil, err
	}
	return of, f.Close()
}

// record writes what stands behind the digest of a posture into the log, once.
func (e *Executor) record(text string) bundle.Digest {
	d := bundle.Sum([]byte(text))
	e.mu.Lock()
	known := e.seen[d]
	if len(e.seen) < 1000 { // policies can make many
		e.seen[d] = true
	}
	e.mu.Unlock()
	if !known {
		e.log.Info("the walls around a script", "digest", d.String(), "posture", text)
	}
	return d
}
