//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// A runtimeRoot is an image as boxes show it in place of the host's programs. It is
// held from its first run until the executor is closed, so that nobody removes it
// meanwhile.
type runtimeRoot struct {
	image  *image.Image
	layout layout
}

// Runtimes are those that were asked for. The zero value has none and no store.
type runtimes struct {
	store *image.Store
	mu    sync.Mutex
	held  map[bundle.Digest]*runtimeRoot
}

// get returns the runtime that the interpreter lies in, nil for one of the host.
func (r *runtimes) get(in gate.Interpreter) (*runtimeRoot, error) {
	if in.Image.IsZero() {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.held[in.Image]; known != nil {
		return known, nil
	}
	if r.store == nil {
		return nil, fmt.Errorf("%w: the interpreter lies in the runtime %q, and this sandbox was given no runtimes", executor.ErrUnavailable, in.Name)
	}
	i, err := r.store.Image(in.Image)
	if err != nil {
		return nil, fmt.Errorf("%w: the runtime %q (%s): %w", executor.ErrUnavailable, in.Name, in.Image, err)
	}
	l, err := imageLayout(i)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the runtime %q: %w", executor.ErrUnavailable, in.Name, err), i.Close())
	}
	if r.held == nil {
		r.held = map[bundle.Digest]*runtimeRoot{}
	}
	r.held[in.Image] = &runtimeRoot{i, l}
	return r.held[in.Image], nil
}

func (r *runtimes) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, rt := range r.held {
		errs = append(errs, rt.image.Close())
	}
	r.held, r.store = nil, nil
	return errors.Join(errs...)
}

// taken are the names at the top of a root, and in /etc, that a box has of its
// own or nobody has: what an image has there is not shown.
var (
	takenTop = []string{"dev", "proc", "sys", "run", "etc", skillDir[1:], inputsDir[1:], outputsDir[1:], tmpDir[1:]}
	takenEtc = []string{"passwd", "passwd-", "group", "group-", "shadow", "shadow-", "gshadow", "gshadow-", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "mtab"}
)

// mostShown is how many mounts and links a runtime may come to.
const mostShown = 400

// mostLinkText is how many bytes the texts of those links may have together. The
// box's own root has 1 MiB for them and each text of 128 bytes takes 4 KiB of it.
const mostLinkText = 16 << 10

// Showable reports what keeps boxes from showing the image, whatever runs in it:
// nil where nothing does.
func Showable(i *image.Image) error {
	_, err := imageLayout(i)
	return err
}

// imageLayout makes the root of a box of the folders and links at the top of an
// image, and of what its /etc has besides a box's own files.
func imageLayout(i *image.Image) (layout, error) {
	l := layout{devices: devices, image: i, grounds: commonGrounds()}
	if err := l.showImage("", takenTop); err != nil {
		return layout{}, err
	}
	if err := l.showImage("/etc", takenEtc); err != nil {
		return layout{}, err
	}
	if n := len(l.binds) + len(l.links); n > mostShown {
		return layout{}, fmt.Errorf("it has %d entries at its top and in /etc, at most %d can be shown", n, mostShown)
	}
	text := 0
	for _, link := range l.links {
		text += len(link[0])
	}
	if text > mostLinkText {
		return layout{}, fmt.Errorf("its links at its top and in /etc have texts of %d bytes, at most %d can be shown", text, mostLinkText)
	}
	for _, d := range l.devices {
		l.grounds = append(l.grounds, grounds{d, rightsOnFile})
	}
	return l, nil
}

// showImage shows what lies in a folder of the image: "" for its top.
func (l *layout) showImage(dir string, taken []string) error {
	f, err := openFolder(l.image.Root(), "."+dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil // it has no such folder, or a link in its place
	}
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(taken, name) {
			continue
		}
		at := dir + "/" + name
		if strings.ContainsAny(name, " \t\n\\#") { // which the kernel writes in another way
			return fmt.Errorf("%q has a name that cannot be shown", at)
		}
		var st unix.Stat_t
		if err := unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			target := make([]byte, 4096)
			n, err := unix.Readlinkat(int(f.Fd()), name, target)
			if err != nil {
				return err
			}
			l.links = append(l.links, [2]string{string(target[:n]), at[1:]})
		case st.Mode&unix.S_IFMT == unix.S_IFDIR && dir == "":
			l.binds = append(l.binds, bind{at, true, attrHost})
			l.grounds = append(l.grounds, grounds{at, rightsToRun})
		case dir != "": // the grounds of /etc cover it
			l.binds = append(l.binds, bind{at, st.Mode&unix.S_IFMT == unix.S_IFDIR, attrHost | unix.MOUNT_ATTR_NOEXEC})
		}
	}
	return nil
}

func openFolder(root *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat2(int(root.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// of returns the image: nil for the host's programs.
func (r *runtimeRoot) of() *image.Image {
	if r == nil {
		return nil
	}
	return r.image
}

// dir is the folder that a box is started in: the runtime's root, which the box
// can show though it could not go there by a path.
func (r *runtimeRoot) dir() string {
	if r == nil {
		return "/"
	}
	return fmt.Sprintf("/proc/self/fd/%d", r.image.Root().Fd())
}

// look holds that what a box shows is the runtime: each folder at its top is the
// image's own.
func (r *runtimeRoot) look(pid int, p *posture) error {
	if r == nil {
		return nil
	}
	for _, b := range r.layout.binds {
		var got, want unix.Stat_t
		err := errors.Join(unix.Stat(fmt.Sprintf("/proc/%d/root%s", pid, b.path), &got), unix.Fstatat(int(r.image.Root().Fd()), "."+b.path, &want, unix.AT_SYMLINK_NOFOLLOW))
		if err == nil && (got.Dev != want.Dev || got.Ino != want.Ino) {
			err = fmt.Errorf("what it shows at %s is not the runtime's", b.path)
		}
		if err != nil {
			return fmt.Errorf("the box is not as it must be: %w", err)
		}
	}
	p.saw("runtime %s", r.image.Digest())
	return nil
}
