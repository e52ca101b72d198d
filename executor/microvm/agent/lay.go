//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// The folders of a run, below filesDir.
const (
	skillName   = "skill"
	inputsName  = "inputs"
	outputsName = "outputs"
	tmpName     = "tmp"
)

// A ground is what was laid out.
type ground struct {
	laid time.Time // when, by the clock of the file system
	dev  uint64
}

// etc is all that a machine knows of a configuration, and what waits for a script.
var etc = [][2]string{
	{"passwd", "root:x:0:0::/:/bin/false\nskill:x:1000:1000:skill:" + frame.HomeDir + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
	{"group", "root:x:0:\nskill:x:1000:\nnogroup:x:65534:\n"},
	{"hosts", "127.0.0.1 localhost\n::1 localhost\n"},
	{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	{waitPy, waitPyText},
	{waitJS, waitJSText},
}

// Flags of mounts.
const (
	closed     = unix.MS_NOSUID | unix.MS_NODEV
	noSymlinks = 0x100 // MS_NOSYMFOLLOW
)

// lay makes the script's root, where it is not there, and lays the files out.
func (a *agent) lay(o *order, skill bundle.Bundle) (*ground, error) {
	if err := a.makeRoot(); err != nil {
		return nil, err
	}
	shm := rootDir + frame.ShmDir
	if err := unix.Mount("", shm, "", unix.MS_REMOUNT|closed|unix.MS_NOEXEC, fmt.Sprintf("size=%d", o.Shm)); err != nil {
		return nil, &os.PathError{Op: "mount", Path: shm, Err: err}
	}
	options := fmt.Sprintf("mode=0700,uid=%d,gid=%d,size=%d,nr_inodes=%d", frame.InsideID, frame.InsideID, o.Space, o.Inodes)
	if err := mount("files", filesDir, "tmpfs", closed, options); err != nil {
		return nil, err
	}
	unix.Umask(0o077)
	for _, name := range []string{skillName, inputsName, outputsName, tmpName + "/" + filepath.Base(frame.HomeDir)} {
		if err := mkdirs(name); err != nil {
			return nil, err
		}
	}
	for name, list := range map[string][]bundle.File{skillName: o.skill, inputsName: o.inputs} {
		for _, f := range list {
			if err := write(name+"/"+f.Path, f.Data); err != nil {
				return nil, err
			}
		}
	}
	if err := show(skill); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	// The folder changes now, so that its time is now in the ticks of the file system.
	if err := errors.Join(os.Mkdir(filesDir+"/laid", 0o700), unix.Stat(filesDir, &st)); err != nil {
		return nil, err
	}
	return &ground{time.Unix(st.Mtim.Unix()), st.Dev}, nil
}

// show shows the files in the script's root. Inside the skill's folder, inputs/ and
// outputs/ are the same folders once more, unless the skill has such names itself.
func show(skill bundle.Bundle) error {
	const data = closed | noSymlinks | unix.MS_NOEXEC
	type place struct {
		name, at string
		flags    uintptr
	}
	places := []place{
		{skillName, frame.SkillDir, closed | noSymlinks}, {inputsName, frame.InputsDir, data}, {outputsName, frame.OutputsDir, data}, {tmpName, frame.TmpDir, data},
	}
	for _, name := range []string{inputsName, outputsName} {
		if slices.ContainsFunc(skill.Paths(), func(p string) bool { return p == name || strings.HasPrefix(p, name+"/") }) {
			continue
		}
		if err := mkdirs(skillName + "/" + name); err != nil {
			return err
		}
		places = append(places, place{name, frame.SkillDir + "/" + name, data})
	}
	for _, p := range places {
		at := rootDir + p.at
		if err := unix.Mount(filesDir+"/"+p.name, at, "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mount", Path: at, Err: err}
		}
		if err := unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|p.flags, ""); err != nil {
			return &os.PathError{Op: "mount", Path: at, Err: err}
		}
	}
	return nil
}

// makeRoot makes the script's root: the runtime, with the folders of a run added, which
// nobody can write to.
func (a *agent) makeRoot() error {
	if a.rooted {
		return nil
	}
	a.rooted = true
	unix.Umask(0)
	if err := unix.Sethostname([]byte("machine")); err != nil {
		return err
	}
	err := mount("/dev/vda", diskDir, "squashfs", closed|unix.MS_RDONLY, "")
	if err == nil {
		err = mount("upper", upperDir, "tmpfs", closed, "mode=0755,size=1m,nr_inodes=1024")
	}
	if err == nil {
		err = errors.Join(os.Mkdir(upperDir+"/u", 0o711), os.Mkdir(upperDir+"/w", 0o755))
	}
	if err == nil {
		err = mount("root", rootDir, "overlay", closed, "lowerdir="+diskDir+",upperdir="+upperDir+"/u,workdir="+upperDir+"/w")
	}
	for _, dir := range []string{"/etc/" + filepath.Dir(waitPy), "/dev", "/proc", frame.SkillDir, frame.InputsDir, frame.OutputsDir, frame.TmpDir} {
		if err == nil {
			err = os.MkdirAll(rootDir+dir, 0o755)
		}
	}
	for _, f := range etc {
		path := rootDir + "/etc/" + f[0]
		if err == nil {
			err = os.RemoveAll(path)
		}
		if err == nil {
			err = os.WriteFile(path, []byte(f[1]), 0o444)
		}
	}
	if err == nil {
		err = devices()
	}
	if err == nil {
		err = mount("proc", rootDir+"/proc", "proc", closed|unix.MS_NOEXEC|unix.MS_RDONLY, "subset=pid,hidepid=invisible")
	}
	if err == nil {
		err = unix.Mount("", rootDir, "", unix.MS_REMOUNT|unix.MS_RDONLY|closed, "")
	}
	return err
}

// devices makes the few that a script has.
func devices() error {
	const dev = rootDir + "/dev"
	if err := mount("dev", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k,nr_inodes=64"); err != nil {
		return err
	}
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		if err := unix.Mknod(dev+"/"+name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink("/proc/self/"+to, dev+"/"+name); err != nil {
			return err
		}
	}
	if err := mount("shm", rootDir+frame.ShmDir, "tmpfs", closed|unix.MS_NOEXEC, "mode=1777,nr_inodes=1024,size=4k"); err != nil { // the order says how large it is
		return err
	}
	return unix.Mount("", dev, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, "")
}

func mount(what, at, kind string, flags uintptr, options string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(what, at, kind, flags, options); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	return nil
}

// mkdirs makes the folders of a path below filesDir, which belong to the script.
func mkdirs(path string) error {
	dir := filesDir
	for elem := range strings.SplitSeq(path, "/") {
		dir += "/" + elem
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = os.Lchown(dir, frame.InsideID, frame.InsideID)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// write makes a file below filesDir, and the folders above it.
func write(path string, data []byte) error {
	if err := mkdirs(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(filesDir+"/"+path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chown(frame.InsideID, frame.InsideID), f.Close())
}
