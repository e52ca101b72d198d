//go:build linux && (amd64 || arm64)

package engine

import (
	"strings"
	"testing"
)

// asItMust is what a container tells that is as it must be.
func asItMust() (order, map[string]string) {
	o := order{id: 60600, memory: 1 << 28, processes: 8, cpuSeconds: 31, space: map[string]int64{skillDir: 1 << 20, filesDir: 1 << 20, tmpDir: 1 << 20}}
	return o, map[string]string{
		"/proc/self/status": "Name:\tinit\nUid:\t60600\t60600\t60600\t60600\nGid:\t60600\t60600\t60600\t60600\nGroups:\t60600 \nNSpid:\t1\nNoNewPrivs:\t1\n" +
			"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n",
		"/sys/fs/cgroup/memory.max": "268435456\n", "/sys/fs/cgroup/pids.max": "73\n", "/sys/fs/cgroup/cpu.max": "100000 100000\n",
		"/proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max cpu time              31                   31                   seconds   \n" +
			"Max stack size            8388608              8388608              bytes     \n" +
			"Max core file size        1                    1                    bytes     \n" +
			"Max processes             9                    9                    processes \n" +
			"Max open files            256                  256                  files     \n" +
			"Max locked memory         65536                65536                bytes     \n" +
			"Max pending signals       256                  256                  signals   \n" +
			"Max msgqueue size         0                    0                    bytes     \n",
		"/proc/self/mountinfo": mounts("/ ro", "/proc rw,nosuid", "/sys ro", "/sys/fs/cgroup ro", "/dev rw", "/dev/shm rw", "/etc/hosts ro", "/run ro",
			"/skill rw,nosuid,nodev", "/files rw,nosuid,nodev,noexec", "/tmp rw,nosuid,nodev,noexec"),
	}
}

func mounts(list ...string) string {
	var b strings.Builder
	for _, m := range list {
		at, options, _ := strings.Cut(m, " ")
		size := "1024k"
		if at == shmDir {
			size = "256k"
		}
		b.WriteString("1 2 0:1 / " + at + " " + options + " - tmpfs tmpfs rw,size=" + size + ",uid=0\n")
	}
	return b.String()
}

// B2: a container that is not as it must be is seen before anything of a run is there.
func TestLook(t *testing.T) {
	o, texts := asItMust()
	if _, err := look(o, texts); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, file, old, new string }{
		{"root", "/proc/self/status", "Uid:\t60600", "Uid:\t0"},
		{"another group", "/proc/self/status", "Gid:\t60600", "Gid:\t0"},
		{"more groups", "/proc/self/status", "Groups:\t60600 ", "Groups:\t60600 0 "},
		{"gains rights", "/proc/self/status", "NoNewPrivs:\t1", "NoNewPrivs:\t0"},
		{"has rights", "/proc/self/status", "CapBnd:\t0000000000000000", "CapBnd:\t00000000a80425fb"},
		{"is not the first", "/proc/self/status", "NSpid:\t1", "NSpid:\t12"},
		{"no memory limit", "/sys/fs/cgroup/memory.max", "268435456", "max"},
		{"another memory limit", "/sys/fs/cgroup/memory.max", "268435456", "268435457"},
		{"no limit of processes", "/sys/fs/cgroup/pids.max", "73", "max"},
		{"no limit of processor time", "/sys/fs/cgroup/cpu.max", "100000 100000", "max 100000"},
		{"the root can be written to", "/proc/self/mountinfo", "/ ro", "/ rw"},
		{"a folder of the host", "/proc/self/mountinfo", "/etc/hosts ro", "/host ro"},
		{"programs in /tmp", "/proc/self/mountinfo", "/tmp rw,nosuid,nodev,noexec", "/tmp rw,nosuid,nodev"},
		{"devices in /skill", "/proc/self/mountinfo", "/skill rw,nosuid,nodev", "/skill rw,nosuid"},
		{"more open files", "/proc/self/limits", "256                  256                  files", "1024                 256                  files"},
		{"no limit of processor time for each process", "/proc/self/limits", "Max cpu time", "Max something"},
		{"more space", "/proc/self/mountinfo", "/tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=1024k", "/tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=1028k"},
		{"no limit of space", "/proc/self/mountinfo", "/tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=1024k,", "/tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,"},
		{"another /dev/shm", "/proc/self/mountinfo", "size=256k", "size=1024k"},
		{"no /files", "/proc/self/mountinfo", "/files rw", "/run rw"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, texts := asItMust()
			changed := strings.Replace(texts[tc.file], tc.old, tc.new, 1)
			if changed == texts[tc.file] {
				t.Fatal("nothing was changed")
			}
			texts[tc.file] = changed
			if seen, err := look(o, texts); err == nil {
				t.Errorf("it passes: %s", seen)
			}
		})
	}
}

// An order says nothing that comes from a script or a tenant but numbers, and shows
// nothing of the host.
func TestOptions(t *testing.T) {
	for _, engine := range []string{"Docker", podman} {
		o := order{name: "tracon-x", image: "sha256:1", id: 60600, memory: 1 << 28, processes: 8, processors: 1, podman: engine == podman,
			space: map[string]int64{skillDir: 1 << 20, filesDir: 1 << 20, tmpDir: 1 << 20}}
		got := o.options()
		h := got.HostConfig
		if len(h.Binds)+len(h.Mounts)+len(h.VolumesFrom)+len(h.Devices)+len(h.CapAdd) > 0 || h.Privileged || !h.ReadonlyRootfs || h.NetworkMode != "none" ||
			h.PidMode != "" || h.Memory != h.MemorySwap || *h.PidsLimit <= 0 || got.Config.User != "60600:60600" || got.Config.Tty {
			t.Errorf("%s: got %+v", engine, got)
		}
		if strings.Contains(h.Tmpfs[tmpDir], "nr_inodes") == o.podman {
			t.Errorf("%s: /tmp is mounted with %s", engine, h.Tmpfs[tmpDir])
		}
	}
}
