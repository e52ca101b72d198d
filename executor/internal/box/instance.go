//go:build unix

package box

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/internal/holder"
)

// An Instance is the folder of one executor of one process, and a lock beside it
// that is held as long as the process lives. It is safe for concurrent use.
type Instance struct {
	runtime *os.File // the folder above
	folder  *os.File
	lock    *os.File
	name    string
	dir     string
}

// instanceName matches the folders of instances, whatever executor made them.
var instanceName = regexp.MustCompile(`^instance-[A-Z2-7]{26}$`)

const lockSuffix = ".lock"

// OpenInstance makes an Instance below the folder runtime, which it creates when
// it is not there. Before that it sweeps: each instance whose lock nobody holds
// is that of a dead process; dead, if not nil, is called with its name and
// folder, and then the folder is removed. Instances that live are left alone.
//
// A folder that is not private to the user of this process is an error: others
// could swap what is staged in it. An error of the sweep does not keep the
// instance from being opened and is returned as warning.
func OpenInstance(runtime string, dead func(name, dir string)) (i *Instance, warning, err error) {
	if !filepath.IsAbs(runtime) {
		return nil, nil, fmt.Errorf("box: the runtime folder %q is not an absolute path", runtime)
	}
	if err := os.MkdirAll(runtime, 0o700); err != nil {
		return nil, nil, fmt.Errorf("box: the runtime folder: %w", err)
	}
	opened := &Instance{}
	i = opened
	if i.runtime, err = os.OpenFile(runtime, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, nil, fmt.Errorf("box: the runtime folder: %w", err)
	}
	defer func() {
		if err != nil {
			opened.closeFiles()
		}
	}()
	if err := checkPrivate(i.runtime); err != nil {
		return nil, nil, err
	}
	warning = sweep(i.runtime, runtime, dead)
	for range 10 {
		i.name = "instance-" + rand.Text()
		if i.lock, err = takeLock(i.runtime, i.name+lockSuffix, unix.O_EXCL); err != nil {
			return nil, warning, fmt.Errorf("box: the lock of an instance: %w", err)
		}
		if i.lock != nil {
			break
		}
	}
	if i.lock == nil {
		return nil, warning, errors.New("box: another process takes every lock in the runtime folder")
	}
	if _, err := i.lock.WriteString(holder.Self()); err != nil {
		return nil, warning, fmt.Errorf("box: the lock of an instance: %w", err)
	}
	i.dir = filepath.Join(runtime, i.name)
	if i.folder, err = makeDir(i.runtime, i.name); err != nil {
		return nil, warning, fmt.Errorf("box: the folder of an instance: %w", err)
	}
	return i, warning, nil
}

// checkPrivate says why the folder cannot be trusted, or nil.
func checkPrivate(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("box: %s: %w", f.Name(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("box: %s belongs to user %d, and this is user %d; name another runtime folder", f.Name(), st.Uid, os.Geteuid())
	}
	if mode := st.Mode & 0o777; mode != 0o700 {
		return fmt.Errorf("box: %s has mode %#o; make it private (chmod 700)", f.Name(), mode)
	}
	return nil
}

// takeLock opens the lock file, creating it, and takes its lock. It returns nil
// where somebody else has it, or has just removed the file.
func takeLock(folder *os.File, name string, flags int) (*os.File, error) {
	f, err := openAt(folder, name, unix.O_RDWR|unix.O_CREAT|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	var mine, there unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &mine)
	if err == nil {
		err = unix.Fstatat(int(folder.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && mine.Ino == there.Ino && mine.Dev == there.Dev {
		return f, nil
	}
	f.Close()
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	return nil, nil
}

// How long, and how often, the lock of a dead process is asked for: a child that it forked
// has it until it has become its program.
const (
	patience = 10 * time.Second
	again    = 5 * time.Millisecond
)

// heldByDead reports whether the process that says in the lock file that it has the lock
// is dead.
func heldByDead(folder *os.File, name string) bool {
	f, err := openAt(folder, name, unix.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return err == nil && holder.Dead(string(text))
}

// sweep removes the instances of dead processes.
func sweep(folder *os.File, dir string, dead func(name, dir string)) error {
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("box: looking for leftovers: %w", err)
	}
	done := map[string]bool{}
	var errs []error
	for _, name := range names {
		name = strings.TrimSuffix(name, lockSuffix)
		if done[name] || !instanceName.MatchString(name) {
			continue
		}
		done[name] = true
		lock, err := takeLock(folder, name+lockSuffix, 0)
		for end := time.Now().Add(patience); lock == nil && err == nil && heldByDead(folder, name+lockSuffix) && time.Now().Before(end); {
			time.Sleep(again)
			lock, err = takeLock(folder, name+lockSuffix, 0)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if lock == nil {
			continue
		}
		if dead != nil {
			dead(name, filepath.Join(dir, name))
		}
		err = removeTree(folder, name)
		if err == nil {
			err = unix.Unlinkat(int(folder.Fd()), name+lockSuffix, 0)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("box: leftovers in %s: %w", filepath.Join(dir, name), err))
		}
		lock.Close()
	}
	return errors.Join(errs...)
}

// Name returns the instance's name, which no other has.
func (i *Instance) Name() string { return i.name }

// Dir returns the instance's folder.
func (i *Instance) Dir() string { return i.dir }

// Close removes the folder and gives the lock back. No run may be under way.
func (i *Instance) Close() error {
	err := removeTree(i.runtime, i.name)
	if err == nil {
		err = unix.Unlinkat(int(i.runtime.Fd()), i.name+lockSuffix, 0)
	}
	i.closeFiles()
	if err != nil {
		return fmt.Errorf("box: removing %s: %w", i.dir, err)
	}
	return nil
}

func (i *Instance) closeFiles() {
	for _, f := range []*os.File{i.folder, i.runtime, i.lock} {
		if f != nil {
			f.Close()
		}
	}
}

// Sweep returns what stops the processes that the scripts of a dead instance left
// running, for [OpenInstance]. What cannot be stopped is logged.
func Sweep(log *slog.Logger) func(name, dir string) {
	return func(name, dir string) {
		_, err := Lineage{Mark: name, Dir: dir}.Stop()
		if err := errors.Join(err, SweepCgroup(name)); err != nil {
			log.Warn("processes that a dead process left were not stopped", "instance", name, "err", err)
		}
	}
}
