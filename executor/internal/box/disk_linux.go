package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// HoldIO makes the rate at which a run reads from disks and writes to them a
// limit, and reports whether it can be one.
func (c *Cgroups) HoldIO() bool { return c != nil && c.enable("io") }

// SetIO limits the run to the rate of each of the disks.
func (g *Cgroup) SetIO(l Limits) error {
	var errs []error
	for _, disk := range l.Disks {
		errs = append(errs, g.set("io.max", fmt.Sprintf("%s rbps=%d wbps=%d", disk, l.DiskRate, l.DiskRate)))
	}
	return errors.Join(errs...)
}

// Disks returns the numbers ("254:0") of the disks on which the folders lie. Of a
// file system that is on no disk of its own, such as one over others, it cannot
// tell which.
func Disks(folders []string) ([]string, error) {
	var disks []string
	for _, dir := range folders {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
		}
		disk, err := diskOf("/sys", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if !slices.Contains(disks, disk) {
			disks = append(disks, disk)
		}
	}
	return disks, nil
}

// diskOf returns the number of the whole disk that the device is, or is a part of:
// the kernel limits no parts.
func diskOf(sys string, major, minor uint32) (string, error) {
	if major == 0 {
		return "", errors.New("it lies on no disk that can be told")
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "dev"))
	return strings.TrimSpace(string(text)), err
}
