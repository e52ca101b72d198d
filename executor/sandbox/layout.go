//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// programFolders are where programs and what they load lie on a host. On most of
// today's hosts all but the first are links into it; on NixOS all lead to the last.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// devices are the only devices of a box.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Shows reports whether a script in a box of this host's own programs sees the file at
// path, an absolute one, where folders are Config.Folders: the box shows its name and
// what that leads to. It is for choosing an interpreter, and no wall.
func Shows(path string, folders []string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	shown := func(p string) bool {
		return slices.ContainsFunc(slices.Concat(programFolders, folders), func(dir string) bool { return below(p, dir) })
	}
	return shown(filepath.Clean(path)) && shown(real)
}

const attrHost = attrClosed | unix.MOUNT_ATTR_RDONLY

// hostLayout makes the root of a box of this host's own programs, and of the
// further folders.
func hostLayout(further []string) (layout, error) {
	l := layout{devices: devices}
	for _, dir := range programFolders {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink == 0 {
			l.show(dir, true)
			continue
		}
		target, err := os.Readlink(dir)
		if err != nil {
			return layout{}, err
		}
		l.links = append(l.links, [2]string{target, dir[1:]})
	}
	// The first leads from /usr/bin/awk to mawk; without the second each start of a
	// program looks for its libraries in all folders.
	for path, folder := range map[string]bool{"/etc/alternatives": true, "/etc/ld.so.cache": false} {
		if info, err := os.Lstat(path); err == nil && info.IsDir() == folder {
			l.show(path, folder)
		}
	}
	for _, dir := range further {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return layout{}, err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || real != dir || dir == "/" {
			return layout{}, fmt.Errorf("the folder %q is to be shown, and is no absolute path of a folder without links in it", dir)
		}
		if !slices.ContainsFunc(l.binds, func(b bind) bool { return below(dir, b.path) }) {
			l.show(dir, true)
		}
	}
	slices.SortFunc(l.binds, func(a, b bind) int { return len(a.path) - len(b.path) })
	for i, b := range l.binds {
		for _, c := range l.binds[i+1:] {
			if below(c.path, b.path) {
				return layout{}, fmt.Errorf("the folder %q is to be shown, and so is %q above it", c.path, b.path)
			}
		}
		for _, taken := range []string{"/dev", "/proc", skillDir, inputsDir, outputsDir, tmpDir} {
			if below(b.path, taken) {
				return layout{}, fmt.Errorf("the folder %q cannot be shown: a box has a %s of its own", b.path, taken)
			}
		}
	}
	l.grounds = append(l.grounds, commonGrounds()...)
	for _, d := range l.devices {
		l.grounds = append(l.grounds, grounds{d, rightsOnFile})
	}
	return l, nil
}

// commonGrounds are what every box has, whatever it shows.
func commonGrounds() []grounds {
	return []grounds{
		{"/etc", rightsToRead}, {"/proc", rightsToRead}, {skillDir, rightsToWrite | unix.LANDLOCK_ACCESS_FS_EXECUTE},
		{inputsDir, rightsToWrite}, {outputsDir, rightsToWrite}, {tmpDir, rightsToWrite}, {shmDir, rightsToWrite},
	}
}

// below reports whether the path is that of the folder or lies in it.
func below(path, folder string) bool {
	return path == folder || len(path) > len(folder) && path[:len(folder)+1] == folder+"/"
}

func (l *layout) show(path string, folder bool) {
	b, rights := bind{path, folder, attrHost}, uint64(rightsToRun)
	if !folder {
		b.flags |= unix.MOUNT_ATTR_NOEXEC
		rights = unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	l.binds = append(l.binds, b)
	l.grounds = append(l.grounds, grounds{path, rights})
}

// folders returns the folders of the host that are shown.
func (l *layout) folders() []string {
	var list []string
	for _, b := range l.binds {
		if b.folder {
			list = append(list, b.path)
		}
	}
	return list
}

// An inode is a file or a folder of the host, whatever it is called.
type inode struct{ dev, ino uint64 }

// inodes returns what the paths of the host that are shown lead to now, by the links
// that a box follows when it shows them. Those of an image have one place for good.
func (l layout) inodes() []inode {
	if l.image != nil {
		return nil
	}
	list := make([]inode, len(l.binds))
	for i, b := range l.binds {
		var st unix.Stat_t
		if err := unix.Stat(b.path, &st); err == nil {
			list[i] = inode{st.Dev, st.Ino}
		}
	}
	return list
}
