//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/calls"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// The descriptors of a box's first process. The script gets the first three.
const (
	statusFD  = 3 // the socket to the host
	programFD = 4 // at first the program that the host prepared, then the interpreter
	initFD    = 5 // the first process's own file
	firstFD   = 6 // what else the host hands over
)

// Where a run has its files, as its script sees them.
const (
	skillDir   = "/skill"
	inputsDir  = "/inputs"
	outputsDir = "/outputs"
	tmpDir     = "/tmp"
	homeDir    = "/tmp/home"
	shmDir     = "/dev/shm"
)

// insideID is the user and the group that a script is, as it sees itself. It is
// not 65534, as which it sees all that belongs to anybody else.
const insideID = 1000

// The stages of setting a box up, in their order.
const (
	stageCgroup     stage = "entering the cgroup"
	stageScore      stage = "being the first to go when memory is short"
	stageIdentity   stage = "taking the identity of the run"
	stageDeath      stage = "ending with the host"
	stageUserNS     stage = "making a user namespace"
	stageIDMap      stage = "mapping the identity"
	stageNoUserNS   stage = "forbidding further user namespaces"
	stageNamespaces stage = "making the namespaces"
	stageMessage    stage = "speaking with the host"
	stageCall       stage = "taking the call"
	stageLoopback   stage = "raising the loopback interface"
	stageRoot       stage = "making the root"
	stageHostFiles  stage = "showing the host's programs"
	stageDevices    stage = "making /dev"
	stageProc       stage = "making /proc"
	stageFiles      stage = "laying out the files"
	stagePivot      stage = "leaving the host's root"
	stageName       stage = "naming the host"
	stageWorkDir    stage = "entering the working directory"
	stageProgram    stage = "opening the interpreter"
	stageLimits     stage = "setting limits"
	stageSignals    stage = "resetting signals"
	stageKeyring    stage = "leaving the host's keyring"
	stagePrivileges stage = "giving up new privileges"
	stageCaps       stage = "giving up capabilities"
	stageLandlock   stage = "restricting files with Landlock"
	stageSeccomp    stage = "filtering system calls"
	stageFork       stage = "starting the script's process"
	stageHide       stage = "hiding the first process"
	stageDescs      stage = "closing descriptors"
	stageWait       stage = "waiting for the host"
	stageExec       stage = "starting the interpreter"
)

// atCwd is the folder that paths begin at (AT_FDCWD).
var atCwd = value{n: uint64(0xffff_ffff_ffff_ff9c)}

// Flags of mounts.
const (
	attrClosed = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrDevice = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY
)

// A bind shows a file or a folder of the host, for reading alone.
type bind struct {
	path   string
	folder bool
	flags  uint64
}

// A layout is the root of a box without what is of one run. It is made once.
type layout struct {
	image   *image.Image // whose root the box starts in and shows; nil: the host's
	binds   []bind
	links   [][2]string // target, name
	devices []string
	grounds []grounds
}

// A frame is a box without what is of one call.
type frame struct {
	id      int // the user and group that it becomes; -1: that of the host
	hostID  [2]int
	hostPID int
	cgroups int          // how many descriptors of cgroups there are, from firstFD on
	runtime *runtimeRoot // what it shows; nil: the host's programs
	network gate.Network
	taken   taken
}

// An order is what a call needs of its box.
type order struct {
	frame
	skill       bundle.Bundle
	inputs      bundle.Bundle
	interpreter string
	argv, env   []string
	space       int64 // bytes of what the run may write
	rlimits     []rlimit
	attempts    []attempt // what is done in place of starting the interpreter
}

type rlimit struct {
	what  int
	limit uint64
}

// layoutOf returns the root of the box.
func (s *setup) layoutOf(f frame) layout {
	if f.runtime != nil {
		return f.runtime.layout
	}
	return s.layout
}

// build writes the program that makes a box up to what depends on the call, which
// it waits for. The process that the host starts makes the namespaces and ends;
// the first in them builds the box. Two programs make every box, whether its call
// is there already or not: so no box can have other walls than another one.
func (s *setup) build(f frame) *program {
	p := newProgram(frameBase)
	s.outside(p, f)
	enter := p.branchFrom(unix.SYS_CLONE, number(unix.CLONE_PARENT|calls.NewNamespaces&^unix.CLONE_NEWUSER))
	p.call(unix.SYS_EXIT_GROUP, number(0))
	enter.to = s.inside(p, f)
	s.renounce(p)
	s.landlockOf(f).rules(p, s.layoutOf(f).grounds)
	p.receive()
	s.alter(p)
	return p
}

// branchFrom adds a system call that returns twice.
func (p *program) branchFrom(nr uintptr, args ...value) *step {
	s := p.call(nr, args...)
	s.flags |= branch
	return s
}

// say sends the host a message.
func (p *program) say(tag byte) *step {
	p.stage = stageMessage
	message := make([]byte, 16)
	message[0] = tag
	return p.call(unix.SYS_WRITE, number(statusFD), p.bytes(message), number(len(message)))
}

// write adds the steps that write into a file that exists.
func (p *program) write(file, text string) {
	fd := p.scratch()
	p.call(unix.SYS_OPENAT, atCwd, p.text(file), number(unix.O_WRONLY|unix.O_CLOEXEC), number(0)).into(fd)
	p.call(unix.SYS_WRITE, fd.value(), p.text(text), number(len(text)))
	p.call(unix.SYS_CLOSE, fd.value())
}

// outside adds what is done in the host's namespaces.
func (s *setup) outside(p *program, f frame) {
	p.stage = stageCgroup
	for i := range f.cgroups {
		p.call(unix.SYS_WRITE, number(firstFD+i), p.text("0"), number(1))
	}
	p.stage = stageScore
	p.write("/proc/self/oom_score_adj", "1000")
	p.stage = stageDescs
	p.call(unix.SYS_CLOSE_RANGE, number(programFD), number(^uint32(0)), number(0))
	id := f.hostID
	if f.id >= 0 {
		id = [2]int{f.id, f.id}
		p.stage = stageIdentity
		n := number(f.id)
		p.call(unix.SYS_SETGROUPS, number(0), number(0))
		p.call(unix.SYS_SETRESGID, n, n, n)
		p.call(unix.SYS_SETRESUID, n, n, n)
		// Its own files below /proc are its own again; nobody else has this identity.
		p.call(unix.SYS_PRCTL, number(unix.PR_SET_DUMPABLE), number(1), number(0), number(0), number(0))
	}
	p.stage = stageDeath
	p.dieWithHost()
	p.call(unix.SYS_GETPPID).must(f.hostPID)
	p.stage = stageUserNS
	p.call(unix.SYS_UNSHARE, number(unix.CLONE_NEWUSER))
	p.stage = stageIDMap
	p.write("/proc/self/setgroups", "deny")
	p.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", insideID, id[0]))
	p.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", insideID, id[1]))
	// Where /proc/sys cannot be written, the filter of system calls alone forbids user
	// namespaces. Watches of files count to the host's user where that is not root,
	// who would have none left.
	p.stage = stageNoUserNS
	begin := len(p.steps)
	p.write("/proc/sys/user/max_user_namespaces", "0")
	p.write("/proc/sys/user/max_inotify_instances", "16")
	p.write("/proc/sys/user/max_inotify_watches", "4096")
	for _, step := range p.steps[begin:] {
		step.mayFail()
	}
	p.stage = stageNamespaces
}

func (p *program) dieWithHost() {
	p.call(unix.SYS_PRCTL, number(unix.PR_SET_PDEATHSIG), number(int(unix.SIGKILL)), number(0), number(0), number(0))
}

// filesystem adds the steps that make a file system, and returns it.
func (p *program) filesystem(kind string, flags uint64, options ...string) variable {
	context, made := p.variable(), p.variable()
	p.call(unix.SYS_FSOPEN, p.text(kind), number(unix.FSOPEN_CLOEXEC)).into(context)
	p.configure(context, unix.FSCONFIG_CMD_CREATE, options)
	p.call(unix.SYS_FSMOUNT, context.value(), number(unix.FSMOUNT_CLOEXEC), number(flags)).into(made)
	p.call(unix.SYS_CLOSE, context.value())
	return made
}

// resize adds the steps that change options of the file system at a path.
func (p *program) resize(at string, options ...string) {
	context := p.scratch()
	p.call(unix.SYS_FSPICK, atCwd, p.text(at), number(unix.FSPICK_CLOEXEC)).into(context)
	p.configure(context, unix.FSCONFIG_CMD_RECONFIGURE, options)
	p.call(unix.SYS_CLOSE, context.value())
}

func (p *program) configure(context variable, command int, options []string) {
	for i := 0; i < len(options); i += 2 {
		p.call(unix.SYS_FSCONFIG, context.value(), number(unix.FSCONFIG_SET_STRING), p.text(options[i]), p.text(options[i+1]), number(0)).option = options[i]
	}
	p.call(unix.SYS_FSCONFIG, context.value(), number(command), number(0), number(0), number(0))
}

// attach puts a mount at a path below the folder.
func (p *program) attach(mount variable, folder value, at string) {
	p.call(unix.SYS_MOVE_MOUNT, mount.value(), p.text(""), folder, p.text(at), number(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// clone makes a mount that shows what lies at the path, with these flags for all
// that is mounted below it too. It is attached before the next one is made.
func (p *program) clone(folder value, at string, flags uint64, deep bool) variable {
	recursive := 0
	if deep {
		recursive = unix.AT_RECURSIVE
	}
	if p.cloned == 0 {
		p.cloned = p.variable()
	}
	made := p.cloned
	p.call(unix.SYS_OPEN_TREE, folder, p.text(at), number(unix.OPEN_TREE_CLONE|unix.O_CLOEXEC|recursive)).into(made)
	p.setFlags(made, flags, recursive)
	return made
}

func (p *program) setFlags(mount variable, flags uint64, recursive int) {
	attr := words(flags, 0, unix.MS_PRIVATE, 0)
	p.call(unix.SYS_MOUNT_SETATTR, mount.value(), p.text(""), number(unix.AT_EMPTY_PATH|recursive), p.bytes(attr), number(len(attr)))
}

// inside adds what is done in the new namespaces, and returns its first step.
func (s *setup) inside(p *program, f frame) *step {
	begin := p.say('H')
	// Its end stops every process that it can reach, and so it must be alone.
	p.stage = stageNamespaces
	p.call(unix.SYS_GETPID).must(1)
	p.stage = stageDeath
	p.dieWithHost()
	if f.network == gate.Loopback {
		p.raise()
	}
	p.stage = stageRoot
	p.call(unix.SYS_UMASK, number(0))
	p.call(unix.SYS_MOUNT, number(0), p.text("/"), number(0), number(unix.MS_REC|unix.MS_PRIVATE), number(0))
	l := s.layoutOf(f)
	inodes := strconv.Itoa(256 + 2*(len(l.binds)+len(l.links)))
	root := p.filesystem("tmpfs", attrClosed|unix.MOUNT_ATTR_NOEXEC, "size", "1m", "nr_inodes", inodes, "mode", "0755")
	p.attach(root, atCwd, "/")
	for _, dir := range []string{"dev", "etc", "proc"} {
		p.mkdir(root.value(), dir, 0o755)
	}
	for _, dir := range []string{skillDir, inputsDir, outputsDir, tmpDir, shmDir} {
		p.mkdir(root.value(), dir[1:], 0o755)
	}
	l.programs(p, root)
	l.makeDevices(p, root)
	p.stage = stageProc
	proc := p.filesystem("proc", attrClosed|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY, "subset", "pid", "hidepid", "invisible")
	p.attach(proc, root.value(), "proc")
	s.places(p, root, f)
	p.stage = stagePivot
	p.call(unix.SYS_FCHDIR, root.value())
	p.call(unix.SYS_PIVOT_ROOT, p.text("."), p.text("."))
	p.call(unix.SYS_UMOUNT2, p.text("."), number(unix.MNT_DETACH))
	p.setFlags(root, attrClosed|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY, 0)
	return begin
}

func (p *program) mkdir(folder value, name string, mode int) {
	p.call(unix.SYS_MKDIRAT, folder, p.text(name), number(mode))
}

// file makes a file.
func (p *program) file(folder value, name string, content value, size, mode int) {
	fd := p.scratch()
	p.call(unix.SYS_OPENAT, folder, p.text(name), number(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC), number(mode)).into(fd)
	if size > 0 {
		p.call(unix.SYS_WRITE, fd.value(), content, number(size)).must(size)
	}
	p.call(unix.SYS_CLOSE, fd.value())
}

// etc is all that a box knows of a host's configuration.
var etc = [][2]string{
	{"passwd", "skill:x:1000:1000:skill:" + homeDir + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
	{"group", "skill:x:1000:\nnogroup:x:65534:\n"},
	{"hosts", "127.0.0.1 localhost\n::1 localhost\n"},
	{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"}, // who asks for a name is refused a socket at once, and that is noted
}

// programs shows the host's programs or a runtime's, and what they need of /etc.
func (l layout) programs(p *program, root variable) {
	p.stage = stageHostFiles
	made := map[string]bool{"/": true, "/dev": true, "/etc": true, "/proc": true}
	for _, b := range l.binds {
		for _, dir := range missing(made, path.Dir(b.path)) {
			p.mkdir(root.value(), dir[1:], 0o755)
		}
		if b.folder {
			p.mkdir(root.value(), b.path[1:], 0o755)
			made[b.path] = true
		} else {
			p.file(root.value(), b.path[1:], value{}, 0, 0o444)
		}
		from, deep := b.path, b.folder
		if l.image != nil { // nothing is mounted in it
			from, deep = "."+b.path, false
		}
		p.attach(p.clone(atCwd, from, b.flags, deep), root.value(), b.path[1:])
	}
	for _, l := range l.links {
		p.call(unix.SYS_SYMLINKAT, p.text(l[0]), root.value(), p.text(l[1]))
	}
	for _, f := range etc {
		p.file(root.value(), "etc/"+f[0], p.text(f[1]), len(f[1]), 0o444)
	}
}

// missing returns the folders that the path needs and nobody made, from above.
func missing(made map[string]bool, dir string) []string {
	var list []string
	for ; !made[dir]; dir = path.Dir(dir) {
		made[dir] = true
		list = append(list, dir)
	}
	slices.Reverse(list)
	return list
}

func (l layout) makeDevices(p *program, root variable) {
	p.stage = stageDevices
	for _, d := range l.devices {
		p.file(root.value(), d[1:], value{}, 0, 0o444)
		p.attach(p.clone(atCwd, d, attrDevice, false), root.value(), d[1:])
	}
	for _, l := range [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}} {
		p.call(unix.SYS_SYMLINKAT, p.text(l[0]), root.value(), p.text("dev/"+l[1]))
	}
}
