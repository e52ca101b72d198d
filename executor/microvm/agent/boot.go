//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where the agent has what, in the machine's first file system.
const (
	modulesDir = "/modules" // with their numbers before their names, in the order of loading
	diskDir    = "/disk"    // the runtime, which cannot be written to
	upperDir   = "/upper"   // what the root adds to it
	rootDir    = "/newroot" // the script's root
	filesDir   = "/files"   // the run's files
	cgroupDir  = "/sys/fs/cgroup"
	runGroup   = cgroupDir + "/run"
	portName   = "tracon"
)

// boot starts the machine, and returns the port to the host.
func boot() (*os.File, error) {
	const plain = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	for _, m := range []struct {
		kind, at string
		flags    uintptr
	}{{"devtmpfs", "/dev", unix.MS_NOSUID | unix.MS_NOEXEC}, {"proc", "/proc", plain}, {"sysfs", "/sys", plain}, {"cgroup2", cgroupDir, plain}} {
		if err := mount(m.kind, m.at, m.kind, m.flags, ""); err != nil {
			return nil, err
		}
	}
	modules, err := filepath.Glob(modulesDir + "/*.ko")
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := load(m); err != nil {
			return nil, err
		}
	}
	return findPort()
}

func load(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "load", Path: module, Err: err}
	}
	return nil
}

// findPort returns the port to the host. It is announced some time after its driver
// was loaded.
func findPort() (*os.File, error) {
	for ; ; time.Sleep(time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if text, err := os.ReadFile(n); err != nil || strings.TrimSpace(string(text)) != portName {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
			if err == nil || !os.IsNotExist(err) {
				return f, err
			}
		}
	}
}
