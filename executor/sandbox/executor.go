//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// An Executor runs scripts in boxes. Make one with [New]. It is safe for
// concurrent use.
type Executor struct {
	log          *slog.Logger
	config       Config
	setup        *setup
	init         *os.File // the first process's program
	null         *os.File // what a box has for its streams before its call
	ahead        *ahead
	starters     *starters
	instance     *box.Instance
	limits       *box.Means
	ids          *box.Identities
	posture      executor.Posture
	noLoopback   error // why a box cannot have it here
	interpreters interpreter.Opener
	runtimes     runtimes
	underWay     *box.UnderWay

	mu   sync.Mutex
	seen map[bundle.Digest]bool // the postures that the log knows
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// errClosing is why runs end that are under way when Close is called.
var errClosing = errors.New("sandbox: the executor was closed while the script ran")

// New returns an Executor. It removes what dead processes left in the same
// runtime folder, and makes a box to prove what [Executor.Posture] says.
//
// # Errors
//
// One that wraps ErrWall and names the wall and the remedy where one that the
// tier needs cannot stand: there is no way to run with less.
func New(c Config) (*Executor, error) { return open(c, func(*setup) {}) }

// open makes an Executor whose setup was changed before anything was proved.
func open(c Config, change func(*setup)) (e *Executor, err error) {
	if c.Space < 0 || c.Processors < 0 || c.DiskRate < 0 {
		return nil, errors.New("sandbox: a negative limit")
	}
	c.Space, c.Processors = cmp.Or(c.Space, DefaultSpace), cmp.Or(c.Processors, DefaultProcessors)
	opened := &Executor{ahead: &ahead{}, log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), config: c, seen: map[bundle.Digest]bool{}}
	opened.runtimes.store = c.Images
	opened.underWay = box.NewUnderWay(ErrClosed, errClosing)
	e = opened
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
			e = nil
		}
	}()
	if e.setup, err = newSetup(c.Folders); err != nil {
		return e, err
	}
	change(e.setup)
	if e.ids, err = box.FindIdentities(); err != nil {
		return e, fmt.Errorf("%w: %s: %w; or run the host as an ordinary user", ErrWall, stageIdentity, err)
	}
	if e.init, err = box.Sealed("init", unix.MFD_EXEC, func(f *os.File) error { _, err := f.Write(initProgram); return err }); err != nil {
		return e, fmt.Errorf("%w: %w", ErrWall, &StepError{"keeping a program in memory", err, "allow it (sysctl vm.memfd_noexec=1 or less)"})
	}
	if e.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return e, fmt.Errorf("sandbox: %w", err)
	}
	e.starters = newStarters()
	instance, warning, err := box.OpenInstance(cmp.Or(c.Runtime, box.DefaultRuntime()), box.Sweep(e.log))
	if warning != nil {
		e.log.Warn("leftovers of a dead process were not removed", "err", warning)
	}
	if err != nil {
		return e, fmt.Errorf("sandbox: %w", err)
	}
	e.instance = instance
	each := box.Limits{Processors: c.Processors, DiskRate: c.DiskRate}
	if c.DiskRate > 0 {
		if each.Disks, err = box.Disks(readFrom(e.setup.layout, c.Images)); err != nil {
			return e, diskWall(err)
		}
	}
	e.limits = box.OpenMeans(instance.Name(), each)
	if c.DiskRate > 0 && !e.limits.HoldsDisks() {
		return e, diskWall(e.limits.Err)
	}
	if err = e.lookAhead(c.Ahead); err != nil {
		return e, err
	}
	if err = e.prove(); errors.Is(err, unix.EBUSY) && e.setup.asks {
		e.setup.ask(false) // there is one who is asked already, such as a container's own
		err = e.prove()
	}
	return e, err
}

// readFrom returns the folders that programs are read from: the host's, and that of
// the runtimes, or the nearest one above where the first import is to make it.
func readFrom(host layout, runtimes *image.Store) []string {
	list := host.folders()
	if runtimes == nil {
		return list
	}
	dir := runtimes.Dir()
	for {
		_, err := os.Stat(dir)
		if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		return append(list, dir) // where it cannot be looked at, whoever asks for its disk says so
	}
}

func diskWall(err error) error {
	return fmt.Errorf("%w: %w", ErrWall, &StepError{"limiting the rate of disks", err, "leave it unlimited (0), or have the programs of the host on a disk, and " + delegate})
}

// Close stops the runs that are under way, which then end with an error, waits
// for them, and leaves nothing. Later runs fail with ErrClosed. It may be called
// again.
func (e *Executor) Close() error {
	if !e.underWay.Close() {
		return nil
	}
	e.ahead.close()
	err := errors.Join(e.limits.Close(), e.runtimes.close())
	if e.starters != nil {
		e.starters.close()
	}
	if e.instance != nil {
		err = errors.Join(err, e.instance.Close())
	}
	for _, f := range []*os.File{e.init, e.null} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// record writes what stands behind the digest of a posture into the log, once.
func (e *Executor) record(p *posture) bundle.Digest {
	d := p.digest()
	e.mu.Lock()
	known := e.seen[d]
	if len(e.seen) < 1000 { // policies can make many
		e.seen[d] = true
	}
	e.mu.Unlock()
	if !known {
		e.log.Info("the walls around a script", "digest", d.String(), "posture", p.text.String())
	}
	return d
}
