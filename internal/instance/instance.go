// Package instance is how a host process tells the next one that it died. Each
// has a file in a folder that they share, with a lock that ends with the process;
// a file without a lock is of a process that did not come to its end.
package instance

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/holder"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// An Instance is this process, in the folder. It is an [audit.Tally]. It is safe
// for concurrent use.
type Instance struct {
	folder string
	id     string
	lock   *ownfile.Lock
	counts *os.File
}

// About is what the file of an instance says.
type About struct {
	Size    uint64    `json:"size"` // of the log when it started
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Process string    `json:"process,omitempty"` // as [holder.Self] tells it
}

// A Dead is an instance that ended without closing.
type Dead struct {
	ID      string
	About   About         // zero where it cannot be read: then the log is looked at from its beginning
	Counted []audit.Entry // what it had counted and perhaps not written
	Damaged int           // counts that cannot be read
}

const (
	folderLock  = "lock"
	fileSuffix  = ".json"
	countSuffix = ".counts"
	maxFile     = 4096
)

// Start makes this process an instance with that id. Before, it hands each one
// that has died to bury; where that fails, the dead one stays, and so does the
// error. Settle, if not nil, is called then, while nobody else starts: what it is about
// is then of an instance that lives here, or of none. Size is that of the log now.
// Only one process of the folder starts at a time.
func Start(ctx context.Context, folder, name string, size uint64, bury func(context.Context, Dead) error, settle func(context.Context) error) (*Instance, error) {
	if !id.Valid(name) {
		return nil, fmt.Errorf("instance: %q is no id", name)
	}
	if err := ownfile.MakeFolder(folder); err != nil {
		return nil, fmt.Errorf("instance: %w", err)
	}
	door, err := ownfile.WaitLock(ctx, filepath.Join(folder, folderLock))
	if err != nil {
		return nil, fmt.Errorf("instance: %w", err)
	}
	defer door.Close()
	if err := sweep(ctx, folder, bury); err != nil {
		return nil, err
	}
	if settle != nil {
		if err := settle(ctx); err != nil {
			return nil, fmt.Errorf("instance: closing what those left of whom there is no sign: %w", err)
		}
	}
	i := &Instance{folder: folder, id: name}
	if err := i.make(About{size, os.Getpid(), time.Now().UTC(), holder.Self()}); err != nil {
		return nil, fmt.Errorf("instance: %w", errors.Join(err, i.end()))
	}
	return i, nil
}

func (i *Instance) path(suffix string) string { return filepath.Join(i.folder, i.id+suffix) }

func (i *Instance) make(about About) (err error) {
	// The counts come first: without the file beside them nobody looks at them.
	if i.counts, err = os.OpenFile(i.path(countSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if i.lock, err = ownfile.TryLock(i.path(fileSuffix)); err != nil {
		return err
	}
	if i.lock == nil {
		return fmt.Errorf("there is an instance %s already", i.id)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if _, err := i.lock.File().Write(text); err != nil {
		return err
	}
	if err := i.lock.File().Sync(); err != nil {
		return err
	}
	return ownfile.SyncFolder(i.folder)
}

// sweep buries the dead. It holds the folder's lock.
func sweep(ctx context.Context, folder string, bury func(context.Context, Dead) error) error {
	found, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	for _, f := range found {
		if name, ok := strings.CutSuffix(f.Name(), countSuffix); ok && id.Valid(name) {
			if _, err := os.Lstat(filepath.Join(folder, name+fileSuffix)); errors.Is(err, fs.ErrNotExist) {
				// It died while it was made, or while it was removed.
				if err := ownfile.Remove(filepath.Join(folder, f.Name())); err != nil {
					return fmt.Errorf("instance: %w", err)
				}
			}
			continue
		}
		name, ok := strings.CutSuffix(f.Name(), fileSuffix)
		if !ok || !id.Valid(name) {
			continue
		}
		i := &Instance{folder: folder, id: name}
		if i.lock, err = ownfile.TakeLock(ctx, i.path(fileSuffix), heldBy); err != nil {
			return fmt.Errorf("instance: %w", err)
		}
		if i.lock == nil {
			continue // it lives
		}
		err := bury(ctx, i.dead())
		if err != nil {
			return errors.Join(fmt.Errorf("instance: closing what %s left: %w", name, err), i.lock.Close())
		}
		if err := i.end(); err != nil {
			return fmt.Errorf("instance: %w", err)
		}
	}
	return nil
}

// dead reads what i left.
func (i *Instance) dead() Dead {
	d := Dead{ID: i.id}
	if text, err := ownfile.Read(i.path(fileSuffix), maxFile); err == nil {
		d.About = about(text)
	}
	counts, err := ownfile.Read(i.path(countSuffix), audit.CountKinds*placeBytes)
	if err != nil {
		return d
	}
	for ; len(counts) > 0; counts = counts[min(placeBytes, len(counts)):] {
		e, ok, err := place(counts[:min(placeBytes, len(counts))])
		switch {
		case err != nil:
			d.Damaged++
		case ok:
			d.Counted = append(d.Counted, e)
		}
	}
	return d
}

// about is what the text of an instance's file says; zero where it was cut while it was made.
func about(text []byte) About {
	var a About
	if strictjson.Unmarshal(text, &a) != nil {
		return About{}
	}
	return a
}

func heldBy(text []byte) string { return about(text).Process }

// end removes the files of i: the one that tells of it last.
func (i *Instance) end() error {
	var errs []error
	if i.counts != nil {
		errs = append(errs, i.counts.Close())
	}
	errs = append(errs, ownfile.Remove(i.path(countSuffix)))
	if i.lock != nil {
		errs = append(errs, i.lock.Close(), ownfile.Remove(i.path(fileSuffix)))
	}
	return errors.Join(errs...)
}

// Close ends i. With left, something of it has no ending: the files stay, and
// the next start finds it as if it had died.
func (i *Instance) Close(ctx context.Context, left bool) error {
	if left {
		return errors.Join(i.counts.Close(), i.lock.Close())
	}
	door, err := ownfile.WaitLock(ctx, filepath.Join(i.folder, folderLock))
	if err != nil {
		return errors.Join(fmt.Errorf("instance: %w", err), i.counts.Close(), i.lock.Close())
	}
	return errors.Join(i.end(), door.Close())
}

// A place of the counts' file holds the count, the length and the sum of the
// entry, and the entry. It is written in one piece, so that it is whole when the
// process is killed; the disk is not waited for.
const (
	placeBytes = 32 << 10
	placeHead  = 8 + 4 + 4
)

// Keep implements [audit.Tally].
func (i *Instance) Keep(at int, entry []byte, count uint64) error {
	if len(entry) > placeBytes-placeHead {
		return fmt.Errorf("instance: an entry of %d bytes has no place", len(entry))
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, placeHead+len(entry)), count)
	b = binary.BigEndian.AppendUint32(b, uint32(len(entry)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(entry))
	_, err := i.counts.WriteAt(append(b, entry...), int64(at)*placeBytes)
	return err
}

// place reads a place; ok is false for one that is free.
func place(b []byte) (e audit.Entry, ok bool, err error) {
	if len(b) < placeHead {
		return e, false, errors.New("instance: a place is cut")
	}
	count, size := binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	if count == 0 {
		return e, false, nil
	}
	rest := b[placeHead:]
	if uint64(size) > uint64(len(rest)) || crc32.ChecksumIEEE(rest[:size]) != binary.BigEndian.Uint32(b[12:]) {
		return e, false, errors.New("instance: a place is damaged")
	}
	e, err = audit.Counted(rest[:size], count)
	return e, err == nil, err
}

// Lives reports whether the process that is the instance name still has its lock.
// It has the lock itself for a moment where nobody does: who starts at that
// moment waits for it.
func Lives(folder, name string) (bool, error) {
	if !id.Valid(name) {
		return false, nil
	}
	i := &Instance{folder: folder, id: name}
	if _, err := os.Stat(i.path(fileSuffix)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("instance: %w", err)
	}
	lock, err := ownfile.TryLockThere(i.path(fileSuffix))
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has ended just now
		return false, nil
	case err != nil:
		return false, fmt.Errorf("instance: %w", err)
	case lock == nil:
		return true, nil
	}
	return false, lock.Close()
}

// Left returns the files of the instances that have died and were not buried. It
// changes nothing.
func Left(ctx context.Context, folder string) (left []string, err error) {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	door, err := ownfile.WaitLockThere(ctx, filepath.Join(folder, folderLock)) // nobody is in the middle of closing
	switch {
	case err == nil:
		defer door.Close()
	case !errors.Is(err, fs.ErrNotExist): // a copy may be without it
		return nil, fmt.Errorf("instance: %w", err)
	}
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("instance: %w", err)
	}
	for _, f := range found {
		name, ok := strings.CutSuffix(f.Name(), fileSuffix)
		if !ok || !id.Valid(name) {
			continue
		}
		lives, err := Lives(folder, name)
		if err != nil {
			return left, err
		}
		if !lives {
			left = append(left, filepath.Join(folder, f.Name()))
		}
	}
	return left, nil
}
