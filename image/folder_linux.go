package image

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFolder copies what lies below from. Links are read, never followed; what
// is mounted there is left out. A folder may change meanwhile: what is hashed is
// what was written.
func (u *unpacker) readFolder(ctx context.Context, from *os.Root) error {
	info, err := from.Stat(".")
	if err != nil {
		return err
	}
	w := folderWalk{u, ctx, from, info.Sys().(*syscall.Stat_t).Dev, map[uint64]string{}}
	if err := w.walk("."); err != nil {
		return err
	}
	return u.rootFileSystem()
}

type folderWalk struct {
	*unpacker
	ctx    context.Context // of one call, like the walk
	from   *os.Root
	device uint64
	linked map[uint64]string // the first path of a file that has several, by inode
}

func (w *folderWalk) walk(dir string) error {
	names, err := list(w.from, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err := w.entry(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *folderWalk) entry(name string) error {
	p, err := w.tree.limits.clean(name)
	if err != nil {
		return err
	}
	info, err := w.from.Lstat(name)
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if st.Dev != w.device {
		return w.skip(p, "another file system is mounted there")
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		if err := w.folder(p); err != nil {
			return err
		}
		return w.walk(name)
	case fs.ModeSymlink:
		target, err := w.from.Readlink(name)
		if err != nil {
			return err
		}
		return w.link(p, target)
	case 0:
		return w.regular(name, p)
	case fs.ModeNamedPipe:
		return w.skip(p, "a pipe")
	case fs.ModeSocket:
		return w.skip(p, "a socket")
	}
	return w.skip(p, "a device")
}

func (w *folderWalk) regular(name, p string) error {
	f, err := w.from.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || st.Dev != w.device {
		return bad("%q changed while it was read", name)
	}
	if st.Nlink > 1 {
		if first, ok := w.linked[st.Ino]; ok {
			return w.hardLink(p, first)
		}
		w.linked[st.Ino] = p
	}
	return w.file(w.ctx, p, node{exec: info.Mode()&0o111 != 0, size: info.Size(), time: seconds(info.ModTime())}, bufio.NewReaderSize(f, 64<<10))
}
