package ownfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// far is a byte that nobody reads: Windows keeps others from what is locked.
const far = 1 << 30

func lock(f *os.File) (taken bool, err error) {
	at := windows.Overlapped{Offset: far}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// SyncFolder does nothing: a folder cannot be flushed on Windows, and NTFS
// journals the names in it.
func SyncFolder(string) error { return nil }
