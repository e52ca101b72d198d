package box

import "testing"

func TestFindController(t *testing.T) {
	const mounts = "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"31 23 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" +
		"32 23 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	for _, tc := range []struct{ name, controller, cgroup, want string }{
		{"alone", "memory", "4:memory:/a/b\n", "/sys/fs/cgroup/memory/a/b"},
		{"at the root", "memory", "4:memory:/\n", "/sys/fs/cgroup/memory"},
		{"with another, a part is mounted", "cpu", "3:cpu,cpuacct:/docker/abc/run\n", "/sys/fs/cgroup/cpu,cpuacct/run"},
		{"another part is mounted", "cpu", "3:cpu,cpuacct:/docker/xyz\n", ""},
		{"a name that is part of another", "cpu", "3:cpuset:/\n2:cpuacct:/\n", ""},
		{"outside the namespace", "memory", "4:memory:/../x\n", ""},
		{"a colon in the path", "memory", "4:memory:/a:b\n", "/sys/fs/cgroup/memory/a:b"},
		{"not mounted", "pids", "5:pids:/\n", ""},
		{"version 2 alone", "memory", "0::/a\n", ""},
	} {
		got, err := findController(tc.controller, tc.cgroup, mounts)
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: got %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
}

// A run's cgroups of version 1 hold their limits, are found in no process's way,
// and are gone afterwards; those of a dead instance are swept.
func TestControllers(t *testing.T) {
	const instance = "instance-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	names := []string{MemoryController, PidsController, CPUController}
	c, err := OpenControllers(instance, names)
	if len(c.dirs) == 0 {
		t.Logf("there are no controllers of version 1 that this user may use: %v", err)
		return
	}
	g, err := c.NewRun("a", Limits{Memory: 64 << 20, Processes: 5, Processors: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Enters()) != c.Count() || g.OutOfMemory() {
		t.Errorf("%d files to enter %d cgroups", len(g.Enters()), c.Count())
	}
	if _, err := c.NewRun("a", Limits{Memory: 64 << 20, Processes: 5, Processors: 0.5}); err == nil {
		t.Error("two runs have one cgroup")
	}
	if err := sweepControllers(instance); err != nil {
		t.Error(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
