package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// Unused is after how long a snapshot that nobody loads is removed.
const Unused = 30 * 24 * time.Hour

const (
	lockName = "lock"
	newName  = "new-" // how a file begins that is being written
)

// A Store keeps snapshots in a folder. It is safe for concurrent use, by several
// processes too: a snapshot is whole or not there, and who reads one keeps it.
type Store struct {
	dir  string
	most int64
}

// Open opens the store in the folder, which it makes where it is not there, and which
// must be its owner's alone. All snapshots together have so many bytes at most.
func Open(dir string, most int64) (*Store, error) {
	if err := ownfile.MakeFolder(dir); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := errors.Join(ownfile.CheckFolder(dir), ownfile.CheckOwner(dir)); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return &Store{dir, most}, nil
}

func (s *Store) path(key bundle.Digest) string { return filepath.Join(s.dir, key.Hex()) }

// Load writes the memory of the snapshot into the file, which it makes as large as that
// is, and returns the state of the devices. What it wrote is worth nothing where it fails.
//
// # Errors
//
// One that wraps ErrNone or ErrTorn; what the operating system says.
func (s *Store) Load(key bundle.Digest, into *os.File) (Info, []byte, error) {
	i, state, err := s.load(key, into)
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(s.path(key), now, now) // it was used; it may just have been removed
	}
	return i, state, err
}

func (s *Store) load(key bundle.Digest, into memory) (Info, []byte, error) {
	f, err := ownfile.Open(s.path(key), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, nil, ErrNone
	}
	if err != nil {
		return Info{}, nil, fmt.Errorf("snapshot: %w", err)
	}
	defer f.Close()
	return read(f, key, into)
}

// Save keeps the snapshot, in place of one of the same key. Those that were not used for
// longest go where there is no room, and those that were not for [Unused]. How long the
// state is, i need not say.
//
// # Errors
//
// One that wraps ErrFull; the cause of ctx; what the operating system says.
func (s *Store) Save(ctx context.Context, i Info, memory *os.File, state []byte) error {
	lock, err := ownfile.WaitLock(ctx, filepath.Join(s.dir, lockName))
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer lock.Close()
	if err := s.unfinished(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	f, err := os.CreateTemp(s.dir, newName)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	err = encode(f, i, memory, state)
	var size int64
	if err == nil {
		var st fs.FileInfo
		if st, err = f.Stat(); err == nil {
			size = st.Size()
		}
	}
	if err == nil && size > s.most {
		err = fmt.Errorf("%w: %d bytes of %d", ErrFull, size, s.most)
	}
	if err == nil {
		err = errors.Join(f.Chmod(0o400), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = errors.Join(s.sweep(s.most-size, i.Key), os.Rename(f.Name(), s.path(i.Key)))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// sweep removes what was not used, and what has no room; the one of that key is replaced.
// The lock is held.
func (s *Store) sweep(room int64, key bundle.Digest) error {
	list, err := s.files()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range list { // the one that was used last comes first
		if f.Name() == key.Hex() {
			continue
		}
		if room -= f.Size(); room < 0 || time.Since(f.ModTime()) > Unused {
			errs = append(errs, remove(filepath.Join(s.dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

// remove removes the file. Another process may just have done it.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// files are the snapshots, the one that was used last first.
func (s *Store) files() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	var list []fs.FileInfo
	for _, e := range entries {
		if _, err := bundle.ParseDigest("sha256:" + e.Name()); err != nil {
			continue
		}
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() { // another process may just have removed it
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return list, nil
}

// Remove removes the snapshot. One that is not there is no error.
func (s *Store) Remove(key bundle.Digest) error {
	if err := remove(s.path(key)); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// A Kept is a snapshot that is there.
type Kept struct {
	Key   bundle.Digest
	Info  Info      // zero where Err is not nil
	Bytes int64     // on the disk
	Used  time.Time // when it was made or loaded last
	Err   error     // why it will be refused; nil: it is whole
}

// List returns the snapshots in the folder, the one that was used last first; each is read
// and held against its digest. A folder that is not there has none.
func List(dir string) ([]Kept, error) {
	s := &Store{dir: dir}
	files, err := s.files()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, f := range files {
		k := Kept{Bytes: f.Size(), Used: f.ModTime()}
		if k.Key, err = bundle.ParseDigest("sha256:" + f.Name()); err != nil {
			continue
		}
		if k.Info, _, k.Err = s.load(k.Key, nowhere{}); errors.Is(k.Err, ErrNone) {
			continue // another process has just removed it
		} else if k.Err != nil {
			k.Info = Info{}
		}
		list = append(list, k)
	}
	return list, nil
}

// unfinished removes what dead processes did not finish. The lock is held.
func (s *Store) unfinished() error {
	entries, err := os.ReadDir(s.dir)
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newName) {
			errs = append(errs, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
