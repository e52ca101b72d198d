//go:build linux && amd64

package microvm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/microvm/internal/snapshot"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"golang.org/x/sys/unix"
)

// openSnapshots opens the store beside the kit. Where none can be kept there, each machine
// is booted: that is slower, and no wall less.
func (e *Executor) openSnapshots() {
	if e.config.Snapshots < 0 {
		return
	}
	store, err := snapshot.Open(snapshotDir(e.config.Kit), e.config.Snapshots)
	if err != nil {
		e.unsaved(err)
		return
	}
	e.saved.store = store
}

// restored returns a machine that was restored; nil where none can be, and one must be
// booted. It fails where ctx is done.
func (e *Executor) restored(ctx context.Context, s size) (*vm, error) {
	if e.saved.store == nil {
		return nil, nil
	}
	v, err := e.restoreOnce(ctx, s)
	switch {
	case err == nil && ctx.Err() == nil:
		return v, nil
	case ctx.Err() != nil:
		if v != nil {
			e.raze(v)
		}
		return nil, context.Cause(ctx)
	case errors.Is(err, errMaking):
	case errors.Is(err, errHung): // the next one will not come up, either
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.log.Warn("a machine did not come back and was killed; another one is booted", "ever", e.hung.Add(1), "err", err)
	default:
		e.unsaved(err)
	}
	return nil, nil
}

// readied returns a machine for a call that has not come, whose interpreter waits; nil
// where none can be restored.
func (e *Executor) readied(ctx context.Context, s size) (*vm, error) {
	v, err := e.restored(ctx, s)
	if v == nil || err != nil {
		return nil, err
	}
	if err := e.prepare(ctx, v, s.waits); err != nil {
		e.raze(v)
		if ctx.Err() == nil {
			e.log.Warn("a machine that was to wait for its call was killed: its interpreter does not wait", "err", err)
		}
		return nil, err
	}
	return v, nil
}

// unsaved logs why machines are booted, once for each reason.
func (e *Executor) unsaved(err error) {
	text := err.Error()
	e.mu.Lock()
	known := slices.Contains(e.reasons, text)
	if !known && len(e.reasons) < 100 {
		e.reasons = append(e.reasons, text)
	}
	e.mu.Unlock()
	if !known {
		e.log.Warn("no machine can be restored, and each is booted, which takes longer", "err", err)
	}
}

// restoreOnce restores a machine.
func (e *Executor) restoreOnce(ctx context.Context, s size) (*vm, error) {
	key, err := e.key(s)
	if err != nil {
		return nil, err
	}
	from, release, err := e.saved.take(ctx, key, func() (*saved, error) { return e.recall(e.underWay.Closing(), key, s) })
	if err != nil {
		return nil, err
	}
	defer release()
	memory, err := reopened(from.memory)
	if err != nil {
		return nil, err
	}
	m := e.machine(s)
	m.counter, m.ram, m.waits = from.counter, memory, true
	v, err := e.launch(s, m)
	memory.Close()
	if err != nil {
		return nil, err
	}
	v.from = key
	v, err = e.looked(v, e.within(ctx, v, e.restoreTime, func(ctx context.Context) error { return e.goOn(ctx, v, from) }))
	if err == nil {
		if err = e.wake(ctx, v); err != nil {
			e.raze(v)
			v, err = nil, fmt.Errorf("%w: it was restored and does not answer: %w; the monitor said %s", ErrMachine, err, v.child.said)
		}
	}
	if ctx.Err() == nil {
		e.saved.told(from, err == nil)
	}
	return v, err
}

// goOn has the machine, which waits, go on where the one was that was saved.
func (e *Executor) goOn(ctx context.Context, v *vm, from *saved) error {
	state, err := reopened(from.state)
	if err != nil {
		return err
	}
	defer state.Close()
	more, err := inodes([]*os.File{state})
	if err != nil {
		return err
	}
	for i := range more {
		v.files[i] = true
	}
	return e.monitor.restore(ctx, &v.control, state)
}

// reopened returns the file opened once more: monitors that had one open file together
// could tell each other something by their place in it.
func reopened(f *os.File) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// key names all that a saved machine was made with, apart from the rate of the
// processor's counter, which is measured anew by each process.
func (e *Executor) key(s size) (bundle.Digest, error) {
	program, err := e.program()
	if err != nil {
		return bundle.Digest{}, err
	}
	disk := "none"
	if s.disk != nil {
		d, err := e.kit.DiskDigest(s.runtime)
		if err != nil {
			return bundle.Digest{}, err
		}
		disk = d.String()
	}
	return keyOf(e.kit.Info(), disk, e.monitor, program, e.processor, s.loaded, e.machine(s)), nil
}

// keyOf is key, of what was found out.
func keyOf(k kit.Info, disk string, by monitor, program, processor bundle.Digest, loaded string, m machine) bundle.Digest {
	m.counter, m.port, m.control, m.ram, m.waits = 0, os.Stdin, os.Stdout, os.Stderr, true // their numbers alone are told
	return bundle.Sum(fmt.Appendf(nil, "tracon/microvm/1\nkernel %s\ninitrd %s\nagent %s\ndisk %s\nmonitor %s %s\nprocessor %s\nloaded %q\nmachine %q\n",
		k.Kernel, k.Initrd, k.Agent, disk, by.describe(), program, processor, loaded, by.argv(m)))
}

// A program is the monitor's, as it was read.
type program struct {
	build bundle.Digest
	at    unix.Stat_t
}

// program returns what the monitor is, which is read again where its file is another one.
func (e *Executor) program() (bundle.Digest, error) {
	var at unix.Stat_t
	if err := unix.Stat(e.monitor.path(), &at); err != nil {
		return bundle.Digest{}, &os.PathError{Op: "stat", Path: e.monitor.path(), Err: err}
	}
	at.Atim = unix.Timespec{}
	e.mu.Lock()
	known := e.known
	e.mu.Unlock()
	if known.at == at {
		return known.build, nil
	}
	build, err := e.monitor.build()
	if err != nil {
		return build, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = program{build, at}
	return build, nil
}

// processorKind returns what the processor is, and the kernel, which says how much of it a
// machine has: a saved machine may have found out what it can.
func processorKind() (bundle.Digest, error) {
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return bundle.Digest{}, err
	}
	kernel, err := os.ReadFile("/proc/version")
	if err != nil {
		return bundle.Digest{}, err
	}
	return kindOf(string(processors), string(kernel))
}

// kindOf is processorKind, of what the kernel says of the processors and of itself.
func kindOf(processors, kernel string) (bundle.Digest, error) {
	var kind strings.Builder
	kind.WriteString(kernel)
	for line := range strings.Lines(processors) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "":
			return bundle.Sum([]byte(kind.String())), nil // the others are like it
		case "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags", "bugs":
			fmt.Fprintf(&kind, "%s:%s\n", strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return bundle.Digest{}, errors.New("the kernel says nothing of the processor")
}

// recall loads the saved machine, or saves one where there is none that serves.
func (e *Executor) recall(ctx context.Context, key bundle.Digest, s size) (*saved, error) {
	from, err := e.load(key)
	switch {
	case err == nil:
		return from, nil
	case errors.Is(err, snapshot.ErrNone):
	case errors.Is(err, snapshot.ErrTorn):
		e.log.Warn("a saved machine is not what was saved: it is refused, and another one is made", "key", key.String(), "err", err)
	default:
		return nil, err
	}
	if err := e.save(ctx, key, s); err != nil {
		return nil, fmt.Errorf("saving a machine: %w", err)
	}
	return e.load(key)
}

// load loads the saved machine into sealed memory.
func (e *Executor) load(key bundle.Digest) (s *saved, err error) {
	var info snapshot.Info
	var state []byte
	s = &saved{key: key}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	s.memory, err = box.Sealed("machine", 0, func(f *os.File) (err error) {
		info, state, err = e.saved.store.Load(key, f)
		return err
	})
	if err != nil {
		return s, err
	}
	if math.Abs(float64(info.Counter-e.counter)) > float64(e.counter)/counterPart {
		return s, fmt.Errorf("%w: the processor's counter has another rate now", snapshot.ErrNone)
	}
	s.counter = info.Counter
	s.state, err = box.Sealed("devices", 0, func(f *os.File) error {
		_, err := f.Write(state)
		return err
	})
	return s, err
}

// save boots a machine and saves it, when it waits for its first order and has the
// interpreter in memory: nothing of any run is in it.
func (e *Executor) save(ctx context.Context, key bundle.Digest, s size) error {
	memory, err := newMemory("machine", s.memory)
	if err != nil {
		return err
	}
	defer memory.Close()
	state, err := newMemory("devices", 0)
	if err != nil {
		return err
	}
	defer state.Close()
	v, err := e.boot(ctx, s, memory)
	if err != nil {
		return err
	}
	if err = e.prepare(ctx, v, s.loaded); err == nil {
		err = e.within(ctx, v, e.config.BootTime, func(ctx context.Context) error { return e.monitor.save(ctx, &v.control, state) })
	}
	e.raze(v) // from now on nobody writes to its memory
	if err != nil {
		return err
	}
	st, err := state.Stat()
	if err != nil {
		return err
	}
	if st.Size() > snapshot.MaxState {
		return fmt.Errorf("its devices have a state of %d bytes", st.Size())
	}
	devices := make([]byte, st.Size())
	if _, err := state.ReadAt(devices, 0); err != nil {
		return err
	}
	return e.saved.store.Save(ctx, snapshot.Info{Key: key, Memory: s.memory, Counter: e.counter}, memory, devices)
}

// newMemory returns a file in memory, so large.
func newMemory(name string, size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
