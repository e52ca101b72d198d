//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
)

// Labels of what is ours in an engine.
const (
	labelFolder   = "org.tracon.folder"   // the runtime folder of the host
	labelInstance = "org.tracon.instance" // the executor
	labelStarted  = "org.tracon.started"  // when that was started
	labelRun      = "org.tracon.run"
)

// Where a run has its files, as its script sees them.
const (
	initPath   = "/.tracon-init"
	skillDir   = "/skill"
	filesDir   = "/files" // where inputs/ and outputs/ lie; the next two are links to there
	inputsDir  = "/inputs"
	outputsDir = "/outputs"
	tmpDir     = "/tmp"
	homeDir    = "/tmp/home"
	shmDir     = "/dev/shm"
)

// folders are the file systems in memory that a script may write to.
var folders = []string{skillDir, filesDir, tmpDir}

// maxInodes is how many files and folders a run may make in each of them.
const maxInodes = 4096

// An order is what a call needs of its container.
type order struct {
	name, image string
	labels      map[string]string
	id          int // the user and the group of the script
	memory      int64
	processes   int
	processors  float64
	cpuSeconds  int64
	space       map[string]int64 // of each folder, in bytes
	inodes      map[string]int
	podman      bool // the engine is Podman, which takes other words for some things
}

// starters is how many threads the engine's own runtime may need before the first
// process is there. The script itself is held to its number by its user.
const starters = 64

// masked are the files of the kernel that say more of the host than a script needs.
var masked = []string{
	"/dev/mqueue", "/dev/pts",
	"/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/cmdline", "/proc/diskstats", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore",
	"/proc/key-users", "/proc/keys", "/proc/latency_stats", "/proc/loadavg", "/proc/locks", "/proc/meminfo", "/proc/modules", "/proc/partitions",
	"/proc/pressure", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo", "/proc/softirqs", "/proc/stat", "/proc/swaps",
	"/proc/sys/kernel/random/boot_id", "/proc/timer_list", "/proc/timer_stats", "/proc/uptime", "/proc/vmallocinfo", "/proc/vmstat", "/proc/zoneinfo",
	"/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/firmware", "/sys/hypervisor", "/sys/kernel", "/sys/module", "/sys/power",
}

// readOnly are those that nobody may write to.
var readOnly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// shm returns how much may lie in /dev/shm, in bytes.
func (o order) shm() int64 { return max(o.space[tmpDir]/4, 64<<10) }

// An rlimit is a limit of each single process, soft and hard.
type rlimit struct {
	name string // as the interface calls it
	what int    // as the kernel does
	most int64
}

func (o order) rlimits() []rlimit {
	return []rlimit{
		{"core", unix.RLIMIT_CORE, 1}, {"cpu", unix.RLIMIT_CPU, o.cpuSeconds}, {"nofile", unix.RLIMIT_NOFILE, 256}, {"nproc", unix.RLIMIT_NPROC, int64(o.processes + 1)},
		{"memlock", unix.RLIMIT_MEMLOCK, 64 << 10}, {"msgqueue", unix.RLIMIT_MSGQUEUE, 0}, {"sigpending", unix.RLIMIT_SIGPENDING, 256}, {"stack", unix.RLIMIT_STACK, 8 << 20},
	}
}

// options says what the engine is to make. Nothing of it comes from a script or a tenant
// but numbers.
func (o order) options() client.ContainerCreateOptions {
	tmpfs := map[string]string{}
	for _, dir := range folders {
		flags := "rw,nosuid,nodev,noexec"
		if dir == skillDir {
			flags = "rw,nosuid,nodev,exec"
		}
		tmpfs[dir] = fmt.Sprintf("%s,mode=777,size=%d", flags, o.space[dir])
		if !o.podman { // 4.3 and later refuse it; the memory of files counts
			tmpfs[dir] += fmt.Sprintf(",nr_inodes=%d", o.inodes[dir])
		}
	}
	for _, dir := range []string{"/run", "/var/tmp"} { // where Podman would put some to write to
		tmpfs[dir] = "ro,nosuid,nodev,noexec,mode=755,size=4k"
	}
	var ulimits []*container.Ulimit
	for _, l := range o.rlimits() {
		ulimits = append(ulimits, &container.Ulimit{Name: l.name, Soft: l.most, Hard: l.most})
	}
	security := []string{"no-new-privileges"}
	if o.podman { // which does not take MaskedPaths, and has more to offer
		security = append(security, "mask="+strings.Join(masked, ":"), "proc-opts=hidepid=2,subset=pid")
	}
	tasks, no := int64(o.processes+1+starters), false
	user := strconv.Itoa(o.id)
	return client.ContainerCreateOptions{
		Name: o.name,
		Config: &container.Config{
			Hostname: "container", User: user + ":" + user, Image: o.image, Entrypoint: []string{initPath}, Cmd: []string{}, Env: []string{"PATH=/usr/bin"},
			WorkingDir: "/", AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true, NetworkDisabled: true,
			Labels: o.labels, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, StopSignal: "SIGKILL",
		},
		HostConfig: &container.HostConfig{
			LogConfig: container.LogConfig{Type: "none"}, NetworkMode: "none", RestartPolicy: container.RestartPolicy{Name: "no"},
			CapDrop: []string{"ALL"}, CgroupnsMode: "private", IpcMode: "private", ReadonlyRootfs: true, SecurityOpt: security,
			Tmpfs: tmpfs, ShmSize: o.shm(), Init: &no, MaskedPaths: masked, ReadonlyPaths: readOnly,
			Resources: container.Resources{
				Memory: o.memory, MemorySwap: o.memory, NanoCPUs: int64(o.processors * 1e9), PidsLimit: &tasks,
				Ulimits: ulimits,
			},
		},
	}
}
