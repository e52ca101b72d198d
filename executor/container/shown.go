//go:build linux && (amd64 || arm64)

package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// A show is something that a container shows, at the same path.
type show struct {
	path   string
	folder bool
	target string // of a link; empty: it is none
	flags  uint64
}

// programFolders are where programs and what they load lie on a host.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// hostShown returns what is shown of the host: its programs, and the further folders.
func hostShown(further []string) ([]show, error) {
	var list []show
	for _, dir := range programFolders {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		s := show{path: dir, folder: true, flags: attrHost}
		if info.Mode()&os.ModeSymlink != 0 {
			if s.target, err = os.Readlink(dir); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	for _, s := range []show{{path: "/etc/alternatives", folder: true}, {path: "/etc/ld.so.cache"}} {
		if info, err := os.Lstat(s.path); err == nil && info.IsDir() == s.folder {
			s.flags = attrHost | unix.MOUNT_ATTR_NOEXEC
			list = append(list, s)
		}
	}
	for _, dir := range further {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || real != dir || dir == "/" {
			return nil, fmt.Errorf("the folder %q is to be shown, and is no absolute path of a folder without links in it", dir)
		}
		for _, taken := range []string{"/dev", "/proc", "/etc", initPath, skillDir, inputsDir, outputsDir, tmpDir} {
			if below(dir, taken) {
				return nil, fmt.Errorf("the folder %q cannot be shown: a container has a %s of its own", dir, taken)
			}
		}
		for _, s := range list {
			if s.target == "" && below(s.path, dir) && s.path != dir {
				return nil, fmt.Errorf("the folder %q is to be shown, and so is %q below it", dir, s.path)
			}
		}
		if !slices.ContainsFunc(list, func(s show) bool { return below(dir, s.path) }) {
			list = append(list, show{path: dir, folder: true, flags: attrHost})
		}
	}
	return list, nil
}

// below reports whether the path is that of the folder or lies in it.
func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// What a runtime has at its top and in /etc that is a container's own, or nobody's.
var (
	takenTop = []string{"dev", "proc", "sys", "run", "etc", initPath[1:], skillDir[1:], inputsDir[1:], outputsDir[1:], tmpDir[1:]}
	takenEtc = []string{"passwd", "passwd-", "group", "group-", "shadow", "shadow-", "gshadow", "gshadow-", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "mtab"}
)

// mostShown is how many mounts and links a runtime may come to.
const mostShown = 400

// imageShown returns what is shown of a runtime.
func imageShown(i *image.Image) ([]show, error) {
	list, err := shownIn(i, "", takenTop)
	if err != nil {
		return nil, err
	}
	more, err := shownIn(i, "/etc", takenEtc)
	if list = append(list, more...); err == nil && len(list) > mostShown {
		err = fmt.Errorf("it has %d entries at its top and in /etc, at most %d can be shown", len(list), mostShown)
	}
	return list, err
}

func shownIn(i *image.Image, dir string, taken []string) (list []show, err error) {
	fd, err := unix.Openat2(int(i.Root().Fd()), "."+dir, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil // it has no such folder, or a link in its place
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(taken, name) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, err
		}
		s := show{path: dir + "/" + name, flags: attrHost}
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFLNK:
			target := make([]byte, 4096)
			n, err := unix.Readlinkat(fd, name, target)
			if err != nil {
				return nil, err
			}
			s.target = string(target[:n])
		case kind == unix.S_IFDIR:
			s.folder = true
		case dir == "":
			continue // a file at the top is no program's affair
		}
		if dir != "" {
			s.flags |= unix.MOUNT_ATTR_NOEXEC
		}
		list = append(list, s)
	}
	return list, nil
}
