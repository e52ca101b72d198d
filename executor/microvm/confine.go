//go:build linux && amd64

package microvm

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

// A child is a monitor that was started.
type child struct {
	process *os.Process
	pidfd   *os.File
	ended   chan struct{} // closed: it has ended, and its thread of ours too
	said    *tail         // what it said of itself, for the log
}

// Where a monitor's programs, libraries and data are.
var programs = []string{"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"}

// Devices that a monitor needs.
const (
	kvmPath = "/dev/kvm"
	nullDev = "/dev/null"
)

// leastLandlock is the first version that covers truncation.
const leastLandlock = 3

// landlock returns a set of rules by which files can be read alone: the programs, the
// machine's files, and where it is accelerated the processor's device. All that this
// kernel knows of Landlock is denied else: files, TCP, signals and abstract sockets
// outside.
func landlock(m machine) (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return -1, fmt.Errorf("the kernel has no Landlock: %w", errno)
	}
	if version < leastLandlock {
		return -1, fmt.Errorf("the kernel has version %d of Landlock, and version %d is needed", version, leastLandlock)
	}
	attr, size := unix.LandlockRulesetAttr{Handled_access_fs: 1<<15 - 1}, uintptr(8)
	if version >= 4 {
		attr.Handled_access_net, size = 3, 16
	}
	if version >= 5 {
		attr.Handled_access_fs = 1<<16 - 1
	}
	if version >= 6 {
		attr.Scoped, size = 3, 24
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	rules := int(fd)
	allow := func(fd int, rights uint64) error {
		rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & attr.Handled_access_fs, Parent_fd: int32(fd)}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
			return os.NewSyscallError("landlock_add_rule", errno)
		}
		return nil
	}
	const onFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	at := func(path string, rights uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			rights |= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
		return allow(fd, rights)
	}
	var err error
	for _, p := range programs {
		err = errors.Join(err, at(p, onFile))
	}
	err = errors.Join(err, at(nullDev, onFile|unix.LANDLOCK_ACCESS_FS_WRITE_FILE))
	for _, f := range []*os.File{m.kernel, m.initrd, m.disk} {
		if f != nil {
			err = errors.Join(err, allow(int(f.Fd()), unix.LANDLOCK_ACCESS_FS_READ_FILE))
		}
	}
	if m.accelerate {
		err = errors.Join(err, at(kvmPath, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV))
	}
	if err != nil {
		unix.Close(rules)
		return -1, err
	}
	return rules, nil
}

// namespaces are those that a monitor has of its own, as clone and as /proc call them.
var namespaces = map[string]uintptr{
	"mnt": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP,
}

// start starts the monitor as the user of that number, who nobody else is. A thread is
// restricted first, and what it starts is restricted with it; it stays until the monitor
// has ended, since the kernel kills the monitor when the thread ends, which is how none
// outlives a host that is killed.
func start(mon monitor, m machine, group box.Group, id int) (*child, error) {
	rules, err := landlock(m)
	if err != nil {
		return nil, err
	}
	defer unix.Close(rules)
	sys, err := attributes(m, id)
	if err != nil {
		return nil, err
	}
	return behind(mon, m, group, sys, rules)
}

// attributes says as whom the monitor runs, and in which namespaces.
func attributes(m machine, id int) (*syscall.SysProcAttr, error) {
	sys := &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id), Groups: []uint32{}},
	}
	for _, flag := range namespaces {
		sys.Cloneflags |= flag
	}
	if m.accelerate {
		var st unix.Stat_t
		if err := unix.Stat(kvmPath, &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: kvmPath, Err: err}
		}
		sys.Credential.Groups = groupsFor(st)
	}
	return sys, nil
}

// nobodysGroup is what the kernel shows for a group that this user namespace does not have.
const nobodysGroup = 65534

// groupsFor returns the group that may read and write the device; none where everybody
// may, where that group is root's, and where it is none that can be given away here.
func groupsFor(device unix.Stat_t) []uint32 {
	const everybody = 0o006
	if device.Mode&everybody == everybody || device.Gid == 0 || device.Gid == nobodysGroup {
		return nil
	}
	return []uint32{device.Gid}
}

// behind starts the monitor behind these walls.
func behind(mon monitor, m machine, group box.Group, sys *syscall.SysProcAttr, rules int) (*child, error) {
	null, err := os.Open(nullDev)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer say.Close()
	attr := &os.ProcAttr{Dir: "/", Env: []string{}, Files: append([]*os.File{null, say, say}, m.files()...), Sys: sys}
	// What this process inherited, or a C library opened, is nobody else's.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		said.Close()
		return nil, os.NewSyscallError("close_range", err)
	}
	c := &child{ended: make(chan struct{}), said: &tail{}}
	began := make(chan error)
	go c.keep(mon, m, attr, group, rules, began)
	if err := <-began; err != nil {
		said.Close()
		return nil, err
	}
	go c.said.read(said)
	return c, nil
}

// keep is behind on a thread of its own.
func (c *child) keep(mon monitor, m machine, attr *os.ProcAttr, group box.Group, rules int, began chan<- error) {
	runtime.LockOSThread()              // and never unlocked: the thread ends with its goroutine
	if unix.Gettid() == unix.Getpid() { // the first thread never ends, and must not be restricted
		other := make(chan struct{})
		go func() { defer close(other); c.keep(mon, m, attr, group, rules, began) }() // while this one is taken
		<-other
		runtime.UnlockOSThread()
		return
	}
	err := func() error {
		for _, f := range group.Enter(attr.Sys) {
			if _, err := unix.Write(int(f.Fd()), []byte("0")); err != nil {
				return fmt.Errorf("entering the cgroup of the run: %w", err)
			}
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
			return os.NewSyscallError("landlock_restrict_self", errno)
		}
		pidfd := -1
		attr.Sys.PidFD = &pidfd
		var err error
		if c.process, err = os.StartProcess(mon.path(), mon.argv(m), attr); err != nil {
			return err
		}
		if pidfd < 0 {
			err = errors.New("the kernel gave no descriptor of the process")
		} else {
			c.pidfd = os.NewFile(uintptr(pidfd), "monitor")
		}
		if err != nil {
			_ = c.process.Kill()
			_, _ = c.process.Wait()
			err = fmt.Errorf("following the monitor: %w", err)
		}
		return err
	}()
	began <- err
	if err != nil {
		return
	}
	_, _ = c.process.Wait()
	close(c.ended)
}

// kill kills the monitor, and the machine with it, and returns when it is gone.
func (c *child) kill() {
	_ = unix.PidfdSendSignal(int(c.pidfd.Fd()), unix.SIGKILL, nil, 0)
	<-c.ended
	c.pidfd.Close()
}

// A tail keeps the end of what a monitor says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2 << 10

func (t *tail) read(f *os.File) {
	defer f.Close()
	buf := make([]byte, maxTail)
	for {
		n, err := f.Read(buf)
		t.mu.Lock()
		t.text = append(t.text, buf[:n]...)
		t.text = t.text[max(0, len(t.text)-maxTail):]
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String returns what was kept, quoted: it may be a stranger's.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strconv.QuoteToASCII(string(t.text))
}
