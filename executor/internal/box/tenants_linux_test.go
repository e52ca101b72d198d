package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// B10: the cgroups of a tenant are made once and are there while one of its runs
// is, however many tenants come; few are kept without a run, and none after Close.
func TestTenants(t *testing.T) {
	var there []string
	tenants := Tenants{
		Make: func(group string) error {
			if slices.Contains(there, group) {
				t.Errorf("%s is made twice", group)
			}
			there = append(there, group)
			return nil
		},
		Remove: func(group string) error {
			if !slices.Contains(there, group) {
				t.Errorf("%s is removed and not there", group)
			}
			there = slices.DeleteFunc(there, func(g string) bool { return g == group })
			return nil
		},
	}
	enter := func(tenant string) string {
		t.Helper()
		group, err := tenants.Enter(tenant)
		if err != nil || !slices.Contains(there, group) || strings.ContainsAny(group, "/.\n") || !strings.HasPrefix(group, "tenant-") {
			t.Fatalf("the group of %q is %q, %v", tenant, group, err)
		}
		return group
	}
	leave := func(group string) {
		t.Helper()
		if err := tenants.Leave(group); err != nil {
			t.Fatal(err)
		}
	}
	a, b := enter("../a\n"), enter("b")
	if a == b || enter("../a\n") != a {
		t.Error("two tenants have one group, or one has two")
	}
	for i := range 3 * mostIdle {
		leave(enter(fmt.Sprint(i)))
	}
	leave(a)
	if !slices.Contains(there, a) || !slices.Contains(there, b) || len(there) != mostIdle+2 {
		t.Errorf("with runs in two groups, %d are there", len(there))
	}
	newest := enter(fmt.Sprint(3*mostIdle - 1)) // it is still there, and not made anew
	for _, group := range []string{a, b, newest} {
		leave(group)
	}
	if err := tenants.Close(); err != nil || len(there) > 0 {
		t.Errorf("after Close there are %q, %v", there, err)
	}
	failing := errors.New("no room")
	tenants.Make = func(string) error { return failing }
	if group, err := tenants.Enter("c"); err != failing || group != "" {
		t.Errorf("got %q, %v", group, err)
	}
	if err := tenants.Close(); err != nil {
		t.Error(err)
	}
}

// pretend makes a folder with the files of a cgroup, of whatever version: what is
// written there can be read.
func pretend(t *testing.T, files ...string) (dir string, wrote func(file string) string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range files {
		must(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	return dir, func(file string) string {
		text, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		return string(text)
	}
}

// What is written to limit a run, where this kernel may have no such controller.
func TestLimitsAsTheyAreWritten(t *testing.T) {
	limits := Limits{Memory: 64 << 20, Processes: 5, Processors: 0.5, DiskRate: 1 << 20, Disks: []string{"254:0"}}
	dir, wrote := pretend(t, "io.max", "cpu.max")
	two := &Cgroup{dir: dir}
	must(t, two.SetIO(limits), two.SetCPU(limits.Processors))
	for file, want := range map[string]string{"io.max": "254:0 rbps=1048576 wbps=1048576", "cpu.max": "50000 100000"} {
		if got := wrote(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	dir, wrote = pretend(t, "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device", "cpu.cfs_period_us", "cpu.cfs_quota_us", "pids.max")
	must(t, limit(IOController, dir, limits), limit(CPUController, dir, limits), limit(PidsController, dir, limits))
	for file, want := range map[string]string{
		"blkio.throttle.read_bps_device": "254:0 1048576", "blkio.throttle.write_bps_device": "254:0 1048576",
		"cpu.cfs_quota_us": "50000", "pids.max": "5",
	} {
		if got := wrote(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	// Sockets of a run that has none are not limited: the file need not be there.
	dir, wrote = pretend(t, "memory.limit_in_bytes", socketsFile)
	must(t, limit(MemoryController, dir, limits))
	if got := wrote(socketsFile); got != "" {
		t.Errorf("sockets are limited to %q", got)
	}
	limits.Sockets = 16 << 20
	must(t, limit(MemoryController, dir, limits))
	if got := wrote(socketsFile); got != "16777216" {
		t.Errorf("sockets are limited to %q", got)
	}
	dir, _ = pretend(t, "memory.limit_in_bytes")
	if err := limit(MemoryController, dir, limits); err == nil {
		t.Error("sockets are not limited, and nobody says so")
	}
	// A limit that cannot be written is an error, whatever the others are.
	dir, _ = pretend(t, "blkio.throttle.read_bps_device")
	if err := limit(IOController, dir, limits); err == nil {
		t.Error("only reading is limited, and nobody says so")
	}
}

// A disk is told by its number, a part of one by that of the whole; of others
// nobody claims to know one.
func TestDiskOf(t *testing.T) {
	sys := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(sys, "devices/vda/vda1"), 0o700), os.MkdirAll(filepath.Join(sys, "dev/block"), 0o700),
		os.WriteFile(filepath.Join(sys, "devices/vda/dev"), []byte("254:0\n"), 0o600),
		os.WriteFile(filepath.Join(sys, "devices/vda/vda1/dev"), []byte("254:1\n"), 0o600),
		os.WriteFile(filepath.Join(sys, "devices/vda/vda1/partition"), []byte("1\n"), 0o600),
		os.Symlink("../../devices/vda", filepath.Join(sys, "dev/block/254:0")),
		os.Symlink("../../devices/vda/vda1", filepath.Join(sys, "dev/block/254:1")))
	for _, tc := range []struct {
		name         string
		major, minor uint32
		want         string
	}{{"a disk", 254, 0, "254:0"}, {"a part of it", 254, 1, "254:0"}, {"no disk", 0, 26, ""}, {"an unknown disk", 8, 0, ""}} {
		if got, err := diskOf(sys, tc.major, tc.minor); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: got %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	if _, err := Disks([]string{"/proc"}); err == nil {
		t.Error("/proc lies on a disk")
	}
}

// A run lies in its tenant's cgroup, which has the same weight as every other,
// with its limits; a dead instance's are swept, the tenants' too.
func TestRunsOfTenants(t *testing.T) {
	const instance = "instance-BBCDEFGHIJKLMNOPQRSTUVWXYZ"
	c, err := OpenControllers(instance, controllers)
	if len(c.dirs) == 0 {
		t.Logf("there are no controllers of version 1 that this user may use: %v", err)
		return
	}
	limits := Limits{Memory: 64 << 20, Processes: 5, Processors: 0.5}
	if disks, err := Disks([]string{"/usr"}); err == nil {
		limits.DiskRate, limits.Disks = 1<<20, disks
	}
	must(t, c.NewTenant("tenant-A"))
	if err := c.NewTenant("tenant-A/none/there"); err == nil {
		t.Error("a group in one that is not there is made")
	}
	must(t, c.NewTenant("tenant-A")) // one that could not be removed serves again
	g, err := c.NewRun("tenant-A/a", limits)
	must(t, err)
	for _, tc := range []struct{ controller, file, want string }{
		{CPUController, "../cpu.shares", "1024\n"}, {CPUController, "cpu.cfs_quota_us", "50000\n"},
		{PidsController, "pids.max", "5\n"}, {MemoryController, "memory.limit_in_bytes", "67108864\n"},
		{IOController, "blkio.throttle.read_bps_device", strings.Join(limits.Disks, "") + " 1048576\n"},
	} {
		if !c.Holds(tc.controller) || tc.controller == IOController && len(limits.Disks) != 1 {
			t.Logf("%s is not held here", tc.controller)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(g.dirs[tc.controller], tc.file)); err != nil || string(got) != tc.want {
			t.Errorf("%s is %q, %v, want %q", tc.file, got, err, tc.want)
		}
		if !strings.HasSuffix(g.dirs[tc.controller], "/tracon-"+instance+"/tenant-A/a") {
			t.Errorf("the run is at %s", g.dirs[tc.controller])
		}
	}
	if err := c.RemoveTenant("tenant-A"); err == nil {
		t.Error("a group with a run in it is removed")
	}
	must(t, SweepCgroup(instance))
	for _, dir := range c.dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("after the sweep there is %s (%v)", dir, err)
		}
	}
	must(t, g.Remove(), c.RemoveTenant("tenant-A"), c.Close())
}

// The same where cgroups are of version 2: what runs are limited by is switched on
// for the tenant's too.
func TestRunsOfTenantsUnified(t *testing.T) {
	own, err := ownCgroup()
	if err != nil {
		t.Logf("there are no cgroups of version 2: %v", err)
		return
	}
	const instance = "instance-CBCDEFGHIJKLMNOPQRSTUVWXYZ"
	c, err := openIn(own, instance)
	if err != nil {
		t.Logf("this user may make no cgroups of version 2: %v", err)
		return
	}
	must(t, c.NewTenant("tenant-A"))
	g, err := c.NewRun("tenant-A/a", 64<<20, 5)
	must(t, err)
	on, err := os.ReadFile(filepath.Join(c.dir, "tenant-A", subtreeControl))
	if got := strings.Fields(string(on)); err != nil || len(got) != len(c.enabled) {
		t.Errorf("for the tenant's runs there are %q, and for the instance's %q; %v", got, c.enabled, err)
	}
	must(t, g.folder.Close(), SweepCgroup(instance))
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("after the sweep there is %s (%v)", c.dir, err)
	}
}

// A call that a signal interrupts is made again, and any other error is told.
func TestUninterrupted(t *testing.T) {
	calls := 0
	n, err := uninterrupted(func() (int, error) {
		if calls++; calls < 3 {
			return -1, unix.EINTR
		}
		return 7, nil
	})
	if n != 7 || err != nil || calls != 3 {
		t.Errorf("got %d, %v after %d calls", n, err, calls)
	}
	if _, err := uninterrupted(func() (int, error) { return -1, unix.ENOSPC }); err != unix.ENOSPC {
		t.Errorf("got error %v, want ENOSPC", err)
	}
}
