package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// WriteTar writes what the image holds into an archive, in the bytewise order of the
// paths, which have no slash before them. Each file is compared with the manifest while
// it is written. Wants, if not nil, is asked for each path; what it does not want is
// left out, and all below a folder that it does not want. Nobody is to take an archive
// for whole of which this was an error.
//
// # Errors
//
// One that wraps ErrDamaged where something is not as it was imported; the cause of
// ctx; what w says.
func (i *Image) WriteTar(ctx context.Context, w *tar.Writer, wants func(path string) bool) error {
	t, err := i.told()
	if err != nil {
		return err
	}
	out := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if out[path.Dir(p)] || wants != nil && !wants(p) {
			out[p] = true
			continue
		}
		if err := i.writeNode(w, p, t.nodes[p]); err != nil {
			return damage(err)
		}
	}
	return nil
}

func (i *Image) writeNode(w *tar.Writer, p string, n node) error {
	h := tar.Header{Name: p, Mode: 0o644, ModTime: time.Unix(n.time, 0)}
	switch n.kind {
	case folder:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, p+"/", 0o755
		return w.WriteHeader(&h)
	case link:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, n.target, 0o777
		return w.WriteHeader(&h)
	}
	h.Typeflag, h.Size = tar.TypeReg, n.size
	if n.exec {
		h.Mode = 0o755
	}
	f, err := i.openNode(p)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	sum := sha256.New()
	got, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(f, n.size))
	if err != nil {
		return err
	}
	if more, _ := f.Read(make([]byte, 1)); got != n.size || more > 0 || bundle.Digest(sum.Sum(nil)) != n.sum {
		return fmt.Errorf("%w: %q", ErrDamaged, p)
	}
	return nil
}

// openNode opens a file of the image by its path, in which no link is followed.
func (i *Image) openNode(p string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	for {
		fd, err := unix.Openat2(int(i.root.Fd()), p, &how)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), p), nil
		case unix.EINTR, unix.EAGAIN: // see resolveTries; no path here has a ".."
		default:
			return nil, &fs.PathError{Op: "open", Path: p, Err: err}
		}
	}
}
