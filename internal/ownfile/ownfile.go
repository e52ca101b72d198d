package ownfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tracon-go/tracon/internal/holder"
)

// Errors of this package.
var (
	// ErrPrivate is wrapped by the error for a file or a folder that others may read
	// or write and that must be private. What is in it may be as it was: the remedy is
	// its mode.
	ErrPrivate = errors.New("others may read or write it")

	// ErrKind is wrapped by the error for a path that leads to no regular file: a
	// link, a pipe, a socket, a device. A file of one's own is none of them, so
	// somebody put it there.
	ErrKind = errors.New("it is not a regular file")

	// ErrFlush is wrapped by the error of a flush that failed. The kernel takes what it
	// could not write for written after that: it is read back, and the next flush
	// succeeds, though it is not on the disk. So trying again shows nothing.
	ErrFlush = errors.New("it could not be brought to the disk")
)

// flushed is err, the answer of a flush, as one.
func flushed(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrFlush, err)
	}
	return err
}

// Open opens the file at path, as os.OpenFile does with how; one that it makes is
// its owner's alone. It follows no link at path, and never waits for the other end of
// a pipe.
//
// # Errors
//
// ErrKind for what is no regular file.
func Open(path string, how int) (*os.File, error) {
	f, err := open(path, how)
	if err != nil {
		return nil, err
	}
	in, err := f.Stat()
	if err == nil && !in.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrKind)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append puts data at the end of the file at path, which it makes where there is
// none, and changes nothing that stands there: it works where this user can only
// add. What is broken off leaves a part of data at the end.
func Append(path string, data []byte) error {
	_, err := os.Lstat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := Open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = flushed(f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil && fresh {
		err = SyncFolder(filepath.Dir(path))
	}
	return err
}

// probeFile is the file that Probe writes.
const probeFile = ".tracon-probe"

// Probe finds out by writing whether this user can add to the folder. In one where
// nothing can be removed a file of some bytes stays.
func Probe(folder string) error {
	path := filepath.Join(folder, probeFile)
	if err := Append(path, []byte{'.'}); err != nil {
		return err
	}
	_ = os.Remove(path) // where this user can only add it stays
	return nil
}

// CheckFolder says what is amiss with the mode of a folder in which others must
// change nothing.
//
// # Errors
//
// ErrPrivate where others may write to it; Windows has no such bits.
func CheckFolder(path string) error { return check(path, "700") }

// CheckOwner says what is amiss with the owner or the mode of a file or a folder in
// which others must change nothing: it belongs to this user or to root.
//
// # Errors
//
// ErrPrivate where others may write to it; Windows has no such bits.
func CheckOwner(path string) error {
	in, err := os.Stat(path)
	if err != nil {
		return err
	}
	if uid, ok := owner(in); ok && uid != os.Geteuid() && uid != 0 {
		return fmt.Errorf("%s belongs to the user %d, and this is %d: %w; chown it, and think of who may have changed what is in it", path, uid, os.Geteuid(), ErrPrivate)
	}
	if in.IsDir() {
		return check(path, "700")
	}
	return check(path, "600")
}

func check(path, mode string) error {
	in, err := os.Stat(path)
	if err != nil {
		return err
	}
	if changeable(in.Mode()) {
		return fmt.Errorf("%s has mode %s: %w; chmod %s it, and think of who may have changed what is in it", path, in.Mode(), ErrPrivate, mode)
	}
	return nil
}

// MakeFolder makes the folder, for its owner alone, with those above it that
// are missing. What it made is on the disk, with its name.
func MakeFolder(path string) error {
	if in, err := os.Stat(path); err == nil && in.IsDir() {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := MakeFolder(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		if in, there := os.Stat(path); there != nil || !in.IsDir() { // nobody else made it meanwhile
			return err
		}
	}
	return SyncFolder(above)
}

// Write puts data into the file at path, for its owner alone: all of it or
// nothing, whatever fails and whenever. What was there before is replaced. Only
// one writes a file at a time; its callers hold a lock.
func Write(path string, data []byte) (err error) {
	tmp := path + ".tmp" // one name, so that what a crash left does not pile up
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := flushed(f.Sync()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Read returns what is in the file at path, opened as [Open] does; it must have at
// most limit bytes.
func Read(path string, limit int64) ([]byte, error) { return read(path, limit, false) }

// ReadPrivate is Read for a secret.
//
// # Errors
//
// ErrPrivate where others may read or write the file; Windows has no such bits.
func ReadPrivate(path string, limit int64) ([]byte, error) { return read(path, limit, true) }

func read(path string, limit int64, private bool) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if private && shared(in.Mode()) {
		return nil, fmt.Errorf("%s has mode %s: %w; chmod 600 it, and think of who may have read it", path, in.Mode(), ErrPrivate)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// Remove removes the file at path, for good. One that is not there is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// A Lock is held on a file until it is closed or the process ends, however that
// comes about.
type Lock struct{ f *os.File }

// TryLock takes the lock on the file at path, which it makes where there is
// none. It returns nil where somebody else holds it, this process too.
func TryLock(path string) (*Lock, error) { return tryLock(path, os.O_RDWR|os.O_CREATE) }

// TryLockThere is TryLock for a file that is there already and that this process
// perhaps may only read.
func TryLockThere(path string) (*Lock, error) { return tryLock(path, os.O_RDONLY) }

func tryLock(path string, how int) (*Lock, error) {
	f, err := Open(path, how)
	if err != nil {
		return nil, err
	}
	switch taken, err := lock(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	case !taken:
		return nil, f.Close()
	}
	return &Lock{f}, nil
}

// patience is how long the lock of a dead process is waited for: a child that it forked has
// it until it has become its program.
const patience = 10 * time.Second

// maxSigned is how many bytes the file of a lock may have.
const maxSigned = 64 << 10

// TakeLock is TryLock for a lock whose file tells who holds it: holder finds that in the
// file's text, as [holder.Self] gave it. What a dead process still holds is waited for, at
// most ten seconds. It returns nil where somebody else holds it, or ctx is done.
func TakeLock(ctx context.Context, path string, by func(text []byte) string) (*Lock, error) {
	l, err := TryLock(path)
	if l != nil || err != nil {
		return l, err
	}
	if text, err := Read(path, maxSigned); err != nil || !holder.Dead(by(text)) {
		return nil, nil // who removes it meanwhile holds it
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if l, err = WaitLock(ctx, path); err != nil && ctx.Err() != nil {
		return nil, nil
	}
	return l, err
}

// TakeSigned is TakeLock for a file that is there for its lock alone. It says in it who
// has it.
func TakeSigned(ctx context.Context, path string) (*Lock, error) {
	l, err := TakeLock(ctx, path, func(text []byte) string { return string(text) })
	if l == nil || err != nil {
		return nil, err
	}
	if err = l.f.Truncate(0); err == nil {
		_, err = l.f.WriteAt([]byte(holder.Self()), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("signing the lock %s: %w", path, err), l.Close())
	}
	return l, nil
}

// again is how long WaitLock waits before it tries again.
const again = 5 * time.Millisecond

// WaitLock is TryLock that waits. When ctx is done it returns its cause.
func WaitLock(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, TryLock)
}

// WaitLockThere is TryLockThere that waits.
func WaitLockThere(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, TryLockThere)
}

func waitLock(ctx context.Context, path string, try func(string) (*Lock, error)) (*Lock, error) {
	for {
		if l, err := try(path); l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-time.After(again):
		}
	}
}

// File returns the locked file.
func (l *Lock) File() *os.File { return l.f }

// Close gives the lock back.
func (l *Lock) Close() error { return l.f.Close() }
