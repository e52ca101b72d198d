package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"syscall"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// An Image is an image that was opened, and is held until it is closed. It is
// safe for concurrent use.
type Image struct {
	digest      bundle.Digest
	files       bundle.Digest // the digest of its manifest: its own where it has no environment
	environment map[string]string
	dir         *os.File // its folder, locked
	root        *os.File
}

// Digest returns the image's digest.
func (i *Image) Digest() bundle.Digest { return i.digest }

// Environment returns the variables that runs in the image see in place of the usual
// ones, by name: see [TakeEnvironment].
func (i *Image) Environment() map[string]string { return maps.Clone(i.environment) }

// Root returns the image's root folder. It stays the image's: it is not to be closed.
func (i *Image) Root() *os.File { return i.root }

// Close lets go of the image.
func (i *Image) Close() error { return errors.Join(i.root.Close(), i.dir.Close()) }

// Open opens a regular file for reading, by an absolute path that the image alone
// resolves: its links lead where they would if its root were the host's, and never
// out of it.
//
// # Errors
//
// fs.ErrNotExist and what else the operating system says; fs.ErrInvalid for what
// is no regular file.
func (i *Image) Open(name string) (*os.File, error) {
	f, err := i.OpenAny(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// resolveTries is how often a path is resolved again. The kernel gives up with
// EAGAIN on a path with ".." (a link's, too) whenever anybody mounted or renamed
// anything at that moment: a host that starts boxes does that all the time.
const resolveTries = 10_000

// OpenAny opens whatever stands at the path, with these flags of open(2), by the
// same rules as [Image.Open].
func (i *Image) OpenAny(name string, flags int) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags) | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for n := 1; ; n++ {
		fd, err := unix.Openat2(int(i.root.Fd()), name, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case (err == unix.EAGAIN || err == unix.EINTR) && n < resolveTries:
			runtime.Gosched()
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// readSettings reads the settings, where there are any: they are what the image's
// digest is of.
func (i *Image) readSettings() error {
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", i.dir.Fd()))
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.OpenFile(settingsName, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: its settings are no file", ErrDamaged)
	}
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil {
		return err
	}
	if bundle.Sum(b) != i.digest {
		return fmt.Errorf("%w: its settings have another digest", ErrDamaged)
	}
	i.files, i.environment, err = parseSettings(b)
	return err
}

// told returns what the manifest says.
func (i *Image) told() (*tree, error) {
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", i.dir.Fd()))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	b, err := dir.ReadFile(manifestName)
	if err != nil {
		return nil, fmt.Errorf("%w: its manifest: %w", ErrDamaged, err)
	}
	if bundle.Sum(b) != i.files {
		return nil, fmt.Errorf("%w: its manifest has another digest", ErrDamaged)
	}
	return parseManifest(b)
}

// Verify reads the whole image and compares it with its digest. Progress, if not
// nil, is called with how many entries were read.
//
// # Errors
//
// One that wraps ErrDamaged and names the first path that is not as it was
// imported; the cause of ctx.
func (i *Image) Verify(ctx context.Context, progress func(done uint64)) error {
	want, err := i.told()
	if err != nil {
		return err
	}
	got, err := i.read(ctx, progress)
	if err != nil {
		return damage(err)
	}
	if p, differs := want.differs(got); differs {
		return fmt.Errorf("%w: %q", ErrDamaged, p)
	}
	return nil
}

// damage makes ErrDamaged of what the operating system says where an image lacks
// something, has another kind of thing in its place, or forbids to read it.
func damage(err error) error {
	for _, what := range []error{fs.ErrNotExist, fs.ErrPermission, unix.ENOTDIR, unix.ELOOP} {
		if errors.Is(err, what) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return err
}

// read reads the whole image.
func (i *Image) read(ctx context.Context, progress func(done uint64)) (*tree, error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", i.root.Fd()))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := i.root.Stat()
	if err != nil {
		return nil, err
	}
	if info.Sys().(*syscall.Stat_t).Mode&0o7777 != 0o555 {
		return nil, fmt.Errorf("%w: the mode of its root", ErrDamaged)
	}
	t := &tree{nodes: map[string]node{}}
	return t, t.look(ctx, root, ".", progress)
}

func (t *tree) look(ctx context.Context, root *os.Root, dir string, progress func(done uint64)) error {
	names, err := list(root, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := path.Join(dir, name)
		n, err := lookAt(root, p)
		if err != nil {
			return err
		}
		t.nodes[p] = n
		if progress != nil {
			progress(uint64(len(t.nodes)))
		}
		if n.kind == folder {
			if err := t.look(ctx, root, p, progress); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt returns the node at the path, the zero node for what no image has.
func lookAt(root *os.Root, p string) (n node, err error) {
	info, err := root.Lstat(p)
	if err != nil {
		return n, err
	}
	perm := os.FileMode(info.Sys().(*syscall.Stat_t).Mode & 0o7777)
	switch info.Mode().Type() {
	case fs.ModeDir:
		n = node{kind: folder}
	case fs.ModeSymlink:
		n.kind = link
		n.target, err = root.Readlink(p)
		return n, err
	case 0:
		n = node{kind: file, exec: info.Mode()&0o111 != 0, time: info.ModTime().Unix()}
		if perm != mode(n) {
			return node{}, nil
		}
		f, err := root.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return n, err
		}
		defer f.Close()
		h := sha256.New()
		if n.size, err = io.Copy(h, f); err != nil {
			return n, err
		}
		h.Sum(n.sum[:0])
	}
	if perm != mode(n) {
		return node{}, nil
	}
	return n, nil
}
