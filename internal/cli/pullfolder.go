package cli

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/internal/ownfile"
)

// lockEnd ends the name of the lock of a pull's folder, which lies beside it.
const lockEnd = ".lock"

// pullFolder makes a folder for the parts of an image on its way to a server, and returns
// it and what removes it. It lies in the user's cache folder, so that the next pull removes
// what a killed one left, gigabytes perhaps. Where there is no such folder it lies where
// everybody's temporary files do, and whoever clears those removes it.
func pullFolder() (dir *os.Root, remove func() error, err error) {
	in, err := os.UserCacheDir()
	if err == nil {
		in = filepath.Join(in, "tracon", "pulls")
		err = os.MkdirAll(in, 0o700)
	}
	if err != nil {
		at, err := os.MkdirTemp("", "tracon-pull-")
		if err != nil {
			return nil, nil, err
		}
		return openPull(at, func() error { return nil })
	}
	sweepPulls(in)
	at := filepath.Join(in, rand.Text())
	lock, err := ownfile.TryLock(at + lockEnd)
	if err != nil {
		return nil, nil, err
	}
	if lock == nil {
		return nil, nil, errors.New("another pull cleared up at that very moment; try again")
	}
	free := func() error { return errors.Join(lock.Close(), os.Remove(at+lockEnd)) }
	if err := os.Mkdir(at, 0o700); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	return openPull(at, free)
}

func openPull(at string, free func() error) (*os.Root, func() error, error) {
	dir, err := os.OpenRoot(at)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(at), free())
	}
	return dir, func() error { return errors.Join(dir.Close(), os.RemoveAll(at), free()) }, nil
}

// sweepPulls removes what killed pulls left in the folder: what nobody has locked. What
// cannot be removed is tried again by the next one.
func sweepPulls(in string) {
	names, _ := os.ReadDir(in)
	for _, e := range names {
		at, ok := strings.CutSuffix(filepath.Join(in, e.Name()), lockEnd)
		if !ok {
			continue
		}
		if lock, err := ownfile.TryLockThere(at + lockEnd); err == nil && lock != nil {
			err := os.RemoveAll(at)
			_ = lock.Close()
			if err == nil {
				_ = os.Remove(at + lockEnd)
			}
		}
	}
}
