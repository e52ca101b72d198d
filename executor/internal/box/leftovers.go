//go:build unix

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Leftovers returns the folders and locks that dead instances have left below the
// folder runtime, which the next [OpenInstance] removes. It removes and makes
// nothing.
func Leftovers(runtime string) (left []string, err error) {
	folder, err := os.OpenFile(runtime, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("box: the runtime folder: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("box: looking for leftovers: %w", err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		instance := strings.TrimSuffix(name, lockSuffix)
		if seen[instance] || !instanceName.MatchString(instance) {
			continue
		}
		seen[instance] = true
		dead, err := isDead(folder, instance)
		if err != nil {
			return left, fmt.Errorf("box: the lock of %s: %w", instance, err)
		}
		if dead {
			left = append(left, filepath.Join(runtime, instance))
		}
	}
	return left, nil
}

// isDead reports whether something of the instance is there and nobody has its
// lock. It has the lock itself for a moment where nobody does: who sweeps at that
// moment leaves the instance to the next sweep.
func isDead(folder *os.File, instance string) (bool, error) {
	f, err := openAt(folder, instance+lockSuffix, unix.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return isThere(folder, instance) // who closes removes the folder first
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, err
	}
	return isThere(folder, instance+lockSuffix) // else it has just been closed
}

func isThere(folder *os.File, name string) (bool, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(int(folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// Alive reports whether the instance below the folder runtime is that of a process that
// lives.
func Alive(runtime, instance string) (bool, error) {
	if !instanceName.MatchString(instance) {
		return false, nil
	}
	folder, err := os.OpenFile(runtime, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, fmt.Errorf("box: the runtime folder: %w", err)
	}
	defer folder.Close()
	f, err := openAt(folder, instance+lockSuffix, unix.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
