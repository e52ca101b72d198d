package box

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Only a cgroup that was given to us is a home for runs beside our own.
func TestGiven(t *testing.T) {
	own, err := ownCgroup()
	if err != nil || os.Geteuid() != 0 {
		t.Logf("no cgroup of version 2 that may be marked: %v", err)
		return
	}
	if given("/sys/fs") || given("/nowhere") {
		t.Error("what is no cgroup is taken for one that was given to us")
	}
	dir := filepath.Join(own, "tracon-test-"+filepath.Base(t.TempDir()))
	below := filepath.Join(dir, "host")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(below); err != nil {
			t.Error(err)
		}
	})
	if given(below) || given(dir) {
		t.Error("a cgroup without a mark is taken for one that was given to us")
	}
	if err := unix.Setxattr(dir, "trusted.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if !given(dir) || given(below) {
		t.Errorf("marked: %v, below it: %v", given(dir), given(below))
	}
	// A controller is switched on above, and then is there for runs.
	text, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("controllers of version 2 here: %q", text)
	c, err := openIn(dir, "instance-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if err != nil {
		t.Fatal(err)
	}
	if c.enable("hugetlb") {
		if on, err := os.ReadFile(filepath.Join(dir, subtreeControl)); err != nil || string(on) == "" {
			t.Errorf("above it there is %q, %v", on, err)
		}
	}
	if c.enable("nothing") {
		t.Error("a controller that is not there is held")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
