//go:build linux && (amd64 || arm64)

package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

// Where a run has its files, as its script sees them.
const (
	initPath   = "/init"
	skillDir   = "/skill"
	inputsDir  = "/inputs"
	outputsDir = "/outputs"
	tmpDir     = "/tmp"
	homeDir    = "/tmp/home"
	shmDir     = "/dev/shm"
)

// insideID is the user and the group that a script is, as it sees itself.
const insideID = 1000

// Flags of mounts.
const (
	attrClosed = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrHost   = attrClosed | unix.MOUNT_ATTR_RDONLY
)

// maxInodes is how many files and folders a run may make.
const maxInodes = 4096

// grounds are the folders over which a run's own ground may lie, in a namespace that
// only the OCI runtime shares: every user may go there, as the container's first
// steps must, and no OCI runtime needs what is there.
var grounds = []string{"/dev/shm", "/tmp"}

// A ground is what the host makes for a run before its container: a small file system
// in memory with the container's root, its bundle, and the OCI runtime's state.
type ground struct {
	dir    string   // where it is, in the run's namespace
	folder *os.File // its top
	run    *box.Run // the files of the run, in a file system of their own
}

func (g *ground) close() {
	if g == nil {
		return
	}
	if g.run != nil {
		g.run.Close()
	}
	if g.folder != nil {
		g.folder.Close()
	}
}

// An order is what a call needs of its container.
type order struct {
	instance, name string
	ids            [2]int // of the container's root, which owns nothing, and of the script
	skill, inputs  bundle.Bundle
	argv, env      []string
	program        *os.File // the interpreter
	interpreter    string
	shown          []show
	from           *os.File // the root of the runtime that is shown; nil: the host's
	rlimits        []rlimit
	processes      int
	space          int64
	memory         int64 // bytes, of the run
	gvisor         bool  // the container has gVisor's kernel
}

func (o order) shmSize() string { return "size=" + strconv.FormatInt(o.space/4, 10) }

// apart calls f on a thread with a mount namespace of its own, in which the folder
// (nil: the host's root) is the working directory. The thread ends with f, and with
// it the namespace, unless f started a process.
func apart(folder *os.File, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()              // and never unlocked: the thread ends with its goroutine
		if unix.Gettid() == unix.Getpid() { // the first thread never ends, and is the host's in /proc
			done <- apart(folder, f) // while this one is taken
			runtime.UnlockOSThread()
			return
		}
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("having a working directory of its own: %w", err)
			}
			unix.Umask(0)
			err := unix.Chdir("/")
			if folder != nil {
				err = unix.Fchdir(int(folder.Fd()))
			}
			if err == nil {
				err = unix.Unshare(unix.CLONE_NEWNS)
			}
			if err == nil {
				err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
			}
			if err != nil {
				return fmt.Errorf("making a mount namespace: %w", err)
			}
			return f()
		}()
	}()
	return <-done
}

// prepare makes the ground of a run, in the namespace of the thread.
func (o order) prepare() (g *ground, err error) {
	g = &ground{}
	defer func() {
		if err != nil {
			g.close()
			g = nil
		}
	}()
	if err = closeCgroups(); err != nil {
		return g, fmt.Errorf("keeping the OCI runtime from the cgroups: %w", err)
	}
	trees := make([]int, len(o.shown))
	defer func() {
		for _, t := range trees {
			if t > 0 {
				unix.Close(t)
			}
		}
	}()
	for i, s := range o.shown { // before the ground hides some of them
		if s.target == "" {
			if trees[i], err = clone(unix.AT_FDCWD, o.source(s), s.flags, o.from == nil && s.folder); err != nil {
				return g, fmt.Errorf("showing %s: %w", s.path, err)
			}
		}
	}
	if g.dir, g.folder, err = lay(); err != nil {
		return g, fmt.Errorf("making the ground of a run: %w", err)
	}
	if err = o.makeRoot(g, trees); err != nil {
		return g, fmt.Errorf("making the root: %w", err)
	}
	if err = o.layFiles(g); err != nil {
		return g, fmt.Errorf("laying out the files: %w", err)
	}
	if err = o.sameProgram(g); err != nil {
		return g, err
	}
	config, err := o.config(g.dir)
	if err == nil {
		err = errors.Join(g.mkdir("state", 0o700), g.mkdir("bundle", 0o700), g.write("bundle/config.json", config, 0o600))
	}
	return g, err
}

// source returns where a thing to be shown is, in the namespace of the thread.
func (o order) source(s show) string {
	if o.from != nil {
		return "." + s.path
	}
	return s.path
}

// closeCgroups makes the cgroups read-only, and takes the one of version 2 away where
// version 1 rules: crun gives up where it sees both. In a user namespace it cannot be
// taken away, but be hidden.
func closeCgroups() error {
	const dir = "/sys/fs/cgroup"
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	if st.Type == unix.TMPFS_MAGIC {
		if err := unix.Unmount(dir+"/unified", unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return err
		}
		if err := unix.Statfs(dir+"/unified", &st); err == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			if err := unix.Mount("none", dir+"/unified", "tmpfs", unix.MS_RDONLY, "size=4k"); err != nil {
				return err
			}
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// lay puts an empty file system over a folder that is there.
func lay() (dir string, folder *os.File, err error) {
	for _, dir = range grounds {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			break
		}
	}
	fd, err := filesystem(attrClosed, "mode", "0711", "size", "8m", "nr_inodes", "8192")
	if err != nil {
		return "", nil, err
	}
	defer unix.Close(fd)
	if err = unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return "", nil, err
	}
	folder, err = openFolder(fd, ".")
	return dir, folder, err
}

func openFolder(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// filesystem makes one in memory, which lies nowhere yet.
func filesystem(flags int, options ...string) (int, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(context)
	for i := 0; i < len(options); i += 2 {
		if err := unix.FsconfigSetString(context, options[i], options[i+1]); err != nil {
			return 0, fmt.Errorf("%s=%s: %w", options[i], options[i+1], err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return 0, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, flags)
}

// clone makes a mount that shows what lies at the path, with these flags.
func clone(at int, name string, flags uint64, deep bool) (int, error) {
	recursive := 0
	if deep {
		recursive = unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(at, name, uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|recursive))
	if err != nil {
		return 0, err
	}
	if err := unix.MountSetattr(fd, "", uint(unix.AT_EMPTY_PATH|recursive), &unix.MountAttr{Attr_set: flags}); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// attach puts a mount at a path below the ground, where something stands already.
func (g *ground) attach(mount int, at string) error {
	return unix.MoveMount(mount, "", int(g.folder.Fd()), at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func (g *ground) mkdir(name string, mode uint32) error {
	if err := unix.Mkdirat(int(g.folder.Fd()), name, mode); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

// write makes a file below the ground. Nobody is forked while it is open for writing:
// it may be a program.
func (g *ground) write(name string, data []byte, mode uint32) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Openat(int(g.folder.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// etc is all that a container knows of a host's configuration.
var etc = [][2]string{
	{"passwd", "root:x:0:0::/:/bin/false\nskill:x:1000:1000:skill:" + homeDir + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
	{"group", "root:x:0:\nskill:x:1000:\nnogroup:x:65534:\n"},
	{"hosts", "127.0.0.1 localhost\n::1 localhost\n"},
	{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
}

// makeRoot makes the container's root, with the mounts of what it shows.
func (o order) makeRoot(g *ground, trees []int) error {
	made := map[string]bool{"/": true}
	if err := errors.Join(g.mkdir("root", 0o711), unix.Fchownat(int(g.folder.Fd()), "root", o.ids[0], o.ids[0], unix.AT_SYMLINK_NOFOLLOW)); err != nil { // whose names the script cannot list
		return err
	}
	mkdirs := func(dir string) error {
		var missing []string
		for ; !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			missing = append(missing, dir)
		}
		for i := len(missing) - 1; i >= 0; i-- {
			if err := g.mkdir("root"+missing[i], 0o755); err != nil {
				return err
			}
		}
		return nil
	}
	for _, dir := range []string{"/dev", "/etc", "/proc", skillDir, inputsDir, outputsDir, tmpDir} {
		if err := mkdirs(dir); err != nil {
			return err
		}
	}
	for i, s := range o.shown {
		err := mkdirs(path.Dir(s.path))
		switch {
		case err != nil:
		case s.target != "":
			err = unix.Symlinkat(s.target, int(g.folder.Fd()), "root"+s.path)
		case s.folder:
			err = mkdirs(s.path)
		default:
			err = g.write("root"+s.path, nil, 0o444)
		}
		if err == nil && s.target == "" {
			err = g.attach(trees[i], "root"+s.path)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	for _, f := range etc {
		if err := g.write("root/etc/"+f[0], []byte(f[1]), 0o444); err != nil {
			return err
		}
	}
	return g.write("root"+initPath, initProgram, 0o555)
}

// layFiles lays the files of the run out, as the script's user, and shows them in the
// root.
func (o order) layFiles(g *ground) error {
	size, inodes := o.space, maxInodes
	for _, b := range []bundle.Bundle{o.skill, o.inputs} {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			size += (int64(len(text)) + pageSize - 1) &^ (pageSize - 1)
			inodes += 1 + bundle.DefaultDepth
		}
	}
	id := strconv.Itoa(o.ids[1])
	fd, err := filesystem(attrClosed, "mode", "0700", "uid", id, "gid", id, "size", strconv.FormatInt(size, 10), "nr_inodes", strconv.Itoa(inodes))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(g.mkdir("files", 0o700), g.attach(fd, "files")); err != nil {
		return err
	}
	folder, err := openFolder(fd, ".")
	if err != nil {
		return err
	}
	if g.run, err = o.layAsScript(folder); err != nil {
		return err
	}
	home := box.TmpDir + "/" + path.Base(homeDir)
	if err := errors.Join(unix.Mkdirat(fd, home, 0o700), unix.Fchownat(fd, home, o.ids[1], o.ids[1], unix.AT_SYMLINK_NOFOLLOW)); err != nil {
		return err
	}
	for _, pl := range o.places() {
		tree, err := clone(fd, pl.name, pl.flags, false)
		if err == nil {
			err = g.attach(tree, "root"+pl.at)
			unix.Close(tree)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pl.at, err)
		}
	}
	return nil
}

// A place is a folder of the run and how it is mounted.
type place struct {
	name, at string
	flags    uint64
}

// places returns where the folders of a run are mounted. Inside the skill's folder,
// inputs/ and outputs/ are the same folders once more, unless the skill has such names
// itself.
func (o order) places() []place {
	const data = attrClosed | unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NOEXEC
	list := []place{
		{box.SkillDir, skillDir, attrClosed | unix.MOUNT_ATTR_NOSYMFOLLOW}, {box.InputsDir, inputsDir, data},
		{box.OutputsDir, outputsDir, data}, {box.TmpDir, tmpDir, data},
	}
	for _, name := range []string{box.InputsDir, box.OutputsDir} {
		if !has(o.skill, name) {
			list = append(list, place{name, skillDir + "/" + name, data})
		}
	}
	return list
}

func has(b bundle.Bundle, name string) bool {
	return slices.ContainsFunc(b.Paths(), func(p string) bool { return below(p, name) })
}

// layAsScript lays the files out in the folder. The thread's identity for files is
// the script's meanwhile, so that they belong to it.
func (o order) layAsScript(folder *os.File) (*box.Run, error) {
	for _, step := range []func() error{
		func() error { return unix.Setfsgid(o.ids[1]) },
		func() error { return unix.Setfsuid(o.ids[1]) },
	} {
		if err := step(); err != nil {
			folder.Close()
			return nil, err
		}
	}
	reach := box.OutputsDir + "/"
	if has(o.skill, box.OutputsDir) {
		reach = outputsDir + "/"
	}
	run, err := box.LayIn(folder, o.skill, o.inputs, reach)
	if err = errors.Join(err, unix.Setfsuid(0), unix.Setfsgid(0)); err != nil {
		if run != nil {
			run.Close()
		}
		return nil, err
	}
	return run, nil
}

const pageSize = 4096

// sameProgram holds that the interpreter's path leads to the file that was hashed, as
// the container will resolve it.
func (o order) sameProgram(g *ground) error {
	top, err := openFolder(int(g.folder.Fd()), "root")
	if err != nil {
		return err
	}
	defer top.Close()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	var fd int
	for range 10_000 { // the kernel gives up whenever anybody mounts anything at that moment
		if fd, err = unix.Openat2(int(top.Fd()), o.interpreter, &how); err != unix.EAGAIN && err != unix.EINTR {
			break
		}
		runtime.Gosched()
	}
	if err != nil {
		return fmt.Errorf("a container does not show %s: %w; if it lies in a folder of its own, name that among the folders", o.interpreter, err)
	}
	defer unix.Close(fd)
	var there, hashed unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &there), unix.Fstat(int(o.program.Fd()), &hashed)); err != nil {
		return err
	}
	if there.Dev != hashed.Dev || there.Ino != hashed.Ino {
		return fmt.Errorf("what a container shows as %s is not the file that was probed", o.interpreter)
	}
	return nil
}
