//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
	"golang.org/x/sys/unix"
)

// Limits of the probe's container.
const (
	probeMemory = 64 << 20
	probeTasks  = 6
	probeSpace  = 1 << 20
)

// An attempt is a call of the probe, which must succeed or must not.
type attempt struct {
	name   string
	may    bool
	number uintptr
	args   func(m *message) []arg
}

// attempts are what the first process of the probe's container tries, as the user that
// scripts are.
func attempts() []attempt {
	open := func(name string, may bool, flags int) attempt {
		return attempt{"opening " + name, may, unix.SYS_OPENAT, func(m *message) []arg {
			return []arg{num(-1), m.text(name), num(flags | unix.O_CLOEXEC | unix.O_NONBLOCK), num(0o600)}
		}}
	}
	plain := func(name string, number uintptr, args ...int64) attempt {
		return attempt{name, false, number, func(*message) []arg {
			var list []arg
			for _, a := range args {
				list = append(list, num(a))
			}
			return list
		}}
	}
	var list []attempt
	for _, dir := range folders { // controls
		list = append(list, open(dir+"/x", true, unix.O_WRONLY|unix.O_CREAT))
	}
	for _, name := range []string{"/x", "/etc/x", "/run/x", "/var/tmp/x", "/dev/x", "/sys/x", "/proc/x"} {
		list = append(list, open(name, false, unix.O_WRONLY|unix.O_CREAT))
	}
	for _, name := range []string{initPath, "/etc/passwd", "/etc/hosts", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/dev/mem", "/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"} {
		list = append(list, open(name, false, unix.O_WRONLY))
	}
	for _, name := range []string{"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/vsock", "/proc/kcore", "/etc/shadow", "/root", "/home", "/proc/1/mem"} {
		list = append(list, open(name, false, unix.O_RDONLY))
	}
	return append(list,
		plain("becoming root", unix.SYS_SETRESUID, 0, 0, 0),
		plain("becoming root's group", unix.SYS_SETRESGID, 0, 0, 0),
		plain("making a mount namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNS),
		plain("having a file system mounted", unix.SYS_MOUNT, 0, 0, 0, unix.MS_REMOUNT, 0),
		attempt{"making a device", false, unix.SYS_MKNODAT, func(m *message) []arg {
			return []arg{num(-1), m.text("/tmp/device"), num(unix.S_IFBLK | 0o600), num(0x800)}
		}},
		attempt{"changing the owner of a file", false, unix.SYS_FCHOWNAT, func(m *message) []arg {
			return []arg{num(-1), m.text("/tmp/x"), num(0), num(0), num(0)}
		}},
	)
}

// telling are files of the kernel that tell of the host, and that must be empty or not
// there, as all that is masked.
var telling = []string{"/proc/keys", "/proc/loadavg", "/proc/meminfo", "/proc/sys/kernel/random/boot_id", "/proc/uptime"}

// Slots of the probe, behind all others.
const slotTried = slotOpen + mostOpen + 1

// delegated is how a rootless engine gets cgroups that it may make.
const delegated = "systemd, cgroups of version 2, Delegate=yes"

// prove makes a container whose first process tries what the walls must keep a script
// from, and makes the posture of what came of it.
func (e *Executor) prove(ctx context.Context) error {
	if first, count := e.ids.Range(); e.api.rootless && e.api.users > 0 && e.api.users < first+count {
		return fmt.Errorf("%w: the engine is rootless, and its containers have %d identities where scripts need %d: give its user 65536 in /etc/subuid and in /etc/subgid (usermod --add-subuids, --add-subgids), and call podman system migrate", ErrWall, e.api.users, first+count)
	}
	image, err := e.runtimes.bring(ctx, bundle.Digest{}, nil)
	if err != nil {
		return fmt.Errorf("the probe: %w", err)
	}
	o, err := e.order(job{image: image, memory: probeMemory, processes: probeTasks, timeout: setupTime})
	if err != nil {
		return err
	}
	ctx, stop := e.bounded(ctx, setupTime)
	defer stop()
	r, err := e.open(ctx, o, 0, nil)
	defer e.close(r)
	if err == nil {
		unhang := context.AfterFunc(ctx, func() { r.talk.conn.Close() })
		defer unhang()
		r.seen, err = e.inspect(r)
	}
	if err == nil {
		err = e.try(r)
	}
	switch {
	case errors.Is(err, errNotAsItMustBe):
		return fmt.Errorf("%w: %w", ErrWall, err)
	case err != nil && e.api.rootless: // which gives up itself where it has no cgroups
		return fmt.Errorf("%w: the probe: %w; a rootless engine needs cgroups that it may make: %s", ErrEngine, errors.Join(err, context.Cause(ctx)), delegated)
	case err != nil:
		return fmt.Errorf("%w: the probe: %w", ErrEngine, errors.Join(err, context.Cause(ctx)))
	}
	e.posture = executor.Posture{Executor: Name, Tier: grant.Sandbox, Walls: e.walls()}
	return nil
}

// try makes the attempts, and holds that each came to what it must.
func (e *Executor) try(r *run) error {
	m := message{}
	list := attempts()
	for i, a := range list {
		m.try(a.number, slotTried+slot(i), a.args(&m)...)
	}
	r.talk.answer(&m, [2]arg{at(slotTried), num(8 * len(list))})

	// A datagram to an address of documentation needs a route, and there is none.
	to := binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, unix.AF_INET), 9)
	to = append(to, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	m.try(unix.SYS_SOCKET, slotA, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0))
	m.try(unix.SYS_CONNECT, slotB, of(slotA), m.bytes(to), num(len(to)))
	r.talk.answer(&m, [2]arg{at(slotA), num(8)}, [2]arg{at(slotB), num(8)})
	r.talk.read(&m, "/proc/self/net/dev")

	for _, name := range telling {
		r.talk.read(&m, name)
	}
	m.try(unix.SYS_OPENAT, slotA, num(-1), m.text("/proc"), num(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC), num(0))
	m.try(unix.SYS_GETDENTS64, slotB, of(slotA), inScratch(0), num(direntsSize))
	r.talk.answer(&m, [2]arg{at(slotB), num(8)}, [2]arg{inScratch(0), of(slotB)})

	// More processes than the limit, which are there until all are stopped.
	const forks = probeTasks + 4
	child := func(keep slot, records ...record) {
		at := len(m.records)
		m.records = append(m.records, record{kind: recordFork, keep: keep})
		m.records = append(m.records, records...)
		m.records[at].orElse = len(m.records) + 1
	}
	for i := range forks {
		child(slotTried+slot(i), record{kind: recordCall, number: unix.SYS_PPOLL, args: []arg{num(0), num(0), num(0), num(0)}})
	}
	r.talk.answer(&m, [2]arg{at(slotTried), num(8 * forks)})
	m.try(unix.SYS_KILL, 0, num(-1), num(int(unix.SIGKILL)))
	for range forks {
		m.try(unix.SYS_WAIT4, 0, num(-1), num(0), num(0), num(0))
	}

	// More memory than the limit.
	child(slotPID,
		record{kind: recordCall, number: unix.SYS_MMAP, args: []arg{num(0), num(2 * probeMemory), num(unix.PROT_READ | unix.PROT_WRITE), num(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE), num(-1), num(0)}},
		record{kind: recordCall, number: unix.SYS_EXIT_GROUP, args: []arg{num(0)}})
	m.try(unix.SYS_WAIT4, 0, of(slotPID), at(slotEnd), num(0), num(0))
	r.talk.answer(&m, [2]arg{at(slotEnd), num(8)})
	for i := range oomFiles {
		r.talk.readOpen(&m, slotOOM+slot(i))
	}

	// The filter of system calls.
	filter := m.addresses(binary.LittleEndian.AppendUint64(nil, uint64(len(e.filter)/8)), m.bytes(e.filter))
	m.try(unix.SYS_PRCTL, slotA, num(unix.PR_SET_SECCOMP), num(unix.SECCOMP_MODE_FILTER), filter)
	m.try(unix.SYS_SOCKET, slotB, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0))
	r.talk.answer(&m, [2]arg{at(slotA), num(8)}, [2]arg{at(slotB), num(8)})
	r.talk.read(&m, "/proc/self/status")

	if err := r.talk.say(&m); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{errNotAsItMustBe}, args...)...)
	}
	b, err := r.talk.hear(8 * len(list))
	if err != nil {
		return err
	}
	for i, a := range list {
		if got := result(b[8*i:]); (got >= 0) != a.may {
			return wrong("a probe tried %s, and the answer was %d", a.name, got)
		}
	}
	if b, err = r.talk.hear(16); err != nil {
		return err
	}
	if result(b) >= 0 && result(b[8:]) >= 0 {
		return wrong("a probe has a route to another host")
	}
	text, err := r.talk.heardText()
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "lo" {
			return wrong("a probe has the network interface %.20q", name)
		}
	}
	for _, name := range telling {
		if text, err = r.talk.heardText(); err != nil && !errors.Is(err, unix.EBADF) { // there is no such file
			return err
		}
		if text != "" {
			return wrong("a probe read %s, which tells of the host", name)
		}
	}
	if b, err = r.talk.hear(8); err != nil {
		return err
	}
	if b, err = r.talk.more(int(min(max(result(b), 0), direntsSize))); err != nil {
		return err
	}
	inside, ok := dirents(b)
	var others []string
	for _, entry := range inside {
		if strings.Trim(entry.name, "0123456789") == "" && entry.name != "1" {
			others = append(others, entry.name)
		}
	}
	if !ok || len(inside) == 0 || len(others) > 0 {
		return wrong("a probe saw the processes %q", others)
	}
	if b, err = r.talk.hear(8 * forks); err != nil {
		return err
	}
	if result(b) < 0 || result(b[8*(forks-1):]) != -int64(syscall.EAGAIN) {
		return wrong("a probe that started %d processes of %d that it may was told %d", forks, probeTasks, result(b[8*(forks-1):]))
	}
	if b, err = r.talk.hear(8); err != nil {
		return err
	}
	status, killed := syscall.WaitStatus(binary.LittleEndian.Uint32(b)), false
	for range oomFiles {
		text, err := r.talk.heardText()
		if err != nil && !errors.Is(err, unix.EBADF) {
			return err
		}
		killed = killed || oomKilled(text)
	}
	if !killed || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return wrong("a probe that took more memory than its limit ended with %#x", uint32(status))
	}
	if b, err = r.talk.hear(16); err != nil {
		return err
	}
	if result(b) != 0 || result(b[8:]) != -int64(syscall.EAFNOSUPPORT) {
		return wrong("the filter of system calls was answered %d, and a call that it refuses %d", result(b), result(b[8:]))
	}
	if text, err = r.talk.heardText(); err == nil && !strings.Contains(text, "Seccomp:\t2\n") {
		return wrong("a probe with a filter of system calls has none")
	}
	return err
}

func (e *Executor) walls() []executor.Wall {
	by := e.api.name + " " + e.api.version
	how := "with the host's own users"
	switch {
	case e.api.rootless:
		how = "without root"
	case e.api.mapped:
		how = "with users of its own"
	}
	wall := func(name, proof string) executor.Wall { return executor.Wall{Name: name, Stands: true, Proof: proof} }
	return []executor.Wall{
		wall("files", fmt.Sprintf("a container of %s, %s, shows nothing of the host; a probe in one tried to write its root and the kernel's files and to read the host's, and was refused, with controls that succeed", by, how)),
		wall("network", "a probe had no interface but lo and no route, and the filter of system calls knows no sockets but those of the container"),
		wall("other processes", "a probe saw itself alone"),
		wall("privileges", "a probe had no capability and became nobody else; each run's are seen before its files are there"),
		wall("system calls", fmt.Sprintf("a probe took a filter of %d instructions, and it held; each run takes it before the script", len(e.filter)/8)),
		wall("memory", "a probe that took more than its limit was killed by its cgroup; each run's limit is seen from inside"),
		wall("processes", "a probe was refused more processes than its limit"),
		wall("processor time", "each run's cgroup limits it, which is seen from inside"),
	}
}
