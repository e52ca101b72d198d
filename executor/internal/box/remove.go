//go:build unix

package box

import (
	"crypto/rand"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth is how many folders below one another are held open while a tree is
// removed. What lies deeper is moved up first: a script can nest folders deeper
// than a process may have files open, or than a path may be long.
const maxDepth = 64

// removeTree removes the entry name of the folder and everything below it. It
// follows no link, and makes folders of mode 000 accessible first, through their
// descriptors.
func removeTree(folder *os.File, name string) error {
	if gone, err := removePlain(folder, name); gone || err != nil {
		return err
	}
	base, err := openForRemoval(folder, name)
	if err != nil {
		return err
	}
	defer base.Close()
	for {
		moved, err := empty(base, base, 0)
		if err != nil {
			return err
		}
		if !moved {
			break
		}
	}
	return rmdir(folder, name)
}

// removePlain removes the entry, unless it is a folder with something in it. It
// asks the kernel to do so instead of asking it first what the entry is: most
// entries are files, and most folders of a run are empty.
func removePlain(folder *os.File, name string) (gone bool, err error) {
	err = unix.Unlinkat(int(folder.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	// Linux says EISDIR of a folder; EPERM is what POSIX says of one, and Linux of a
	// file that cannot be removed.
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		switch rerr := unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR); {
		case rerr == nil || errors.Is(rerr, unix.ENOENT):
			return true, nil
		case errors.Is(rerr, unix.ENOTEMPTY) || errors.Is(rerr, unix.EEXIST):
			return false, nil
		case !errors.Is(rerr, unix.ENOTDIR):
			err = rerr
		}
	}
	return false, &os.PathError{Op: "unlink", Path: name, Err: err}
}

func rmdir(folder *os.File, name string) error {
	if err := unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}

// empty removes what is in the folder at that depth below base. It reports
// whether something was moved up to base, where it is still to be removed.
func empty(base, folder *os.File, depth int) (moved bool, err error) {
	if _, err := folder.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	for {
		names, err := folder.Readdirnames(1024)
		for _, name := range names {
			m, err := removeEntry(base, folder, name, depth)
			moved = moved || m
			if err != nil {
				return moved, err
			}
		}
		if errors.Is(err, io.EOF) {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
	}
}

func removeEntry(base, folder *os.File, name string, depth int) (moved bool, err error) {
	if gone, err := removePlain(folder, name); gone || err != nil {
		return false, err
	}
	sub, err := openForRemoval(folder, name)
	if err != nil {
		return false, err
	}
	defer sub.Close()
	if depth == maxDepth {
		err := unix.Renameat(int(folder.Fd()), name, int(base.Fd()), "deep-"+rand.Text())
		return true, err
	}
	if moved, err = empty(base, sub, depth+1); err != nil {
		return moved, err
	}
	return moved, rmdir(folder, name)
}

// openForRemoval opens a folder and makes sure that its owner may read, change
// and enter it.
func openForRemoval(folder *os.File, name string) (*os.File, error) {
	f, err := openDir(folder, name)
	if errors.Is(err, unix.EACCES) {
		if err := unlock(folder, name); err != nil {
			return nil, &os.PathError{Op: "chmod", Path: name, Err: err}
		}
		f, err = openDir(folder, name)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(int(f.Fd()), 0o700) // where it fails, what follows says why
	}
	return f, nil
}
