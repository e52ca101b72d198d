package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// In the folder of a store each image has a folder of its own, named by the 64
// hex digits of its digest: its root, its manifest and perhaps its settings. What does not count yet,
// or no more, has another name and is locked by whoever works on it.
const (
	rootName     = "root"
	manifestName = "manifest"
	settingsName = "settings" // of one with an environment
	unfinished   = ".unfinished-"
)

// A Store keeps images in a folder. It is safe for concurrent use, also by
// several processes on one folder: images and what becomes one are locked.
type Store struct{ dir string }

// New returns the store in the folder dir, which the first import makes, for its
// user alone (mode 0700).
func New(dir string) *Store { return &Store{dir} }

// Dir returns the store's folder, which is not there before the first import.
func (s *Store) Dir() string { return s.dir }

func (s *Store) open() (*os.Root, error) {
	r, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return r, err
}

// ImportTar unpacks a tar archive, plain or compressed with gzip, of a root file
// system.
//
// # Errors
//
// One that wraps ErrContent for what cannot be imported; the cause of ctx; ErrInUse
// or ErrNotFound when the same was being imported or removed at that moment, which
// to try again is worth; one that wraps ErrInUse and ErrDamaged when what is here
// already is damaged, and somebody holds it; what the operating system says. Nothing
// is left then.
//
// What is here already is compared with its digest and, where it is damaged,
// replaced.
func (s *Store) ImportTar(ctx context.Context, r io.Reader, l Limits) (*Import, error) {
	return s.unpack(ctx, l, nil, func(u *unpacker) error { return u.readTar(ctx, r) })
}

// ImportFolder copies a folder that holds a root file system. Files with several
// names in it stay one file.
//
// # Errors
//
// As for ImportTar.
func (s *Store) ImportFolder(ctx context.Context, dir string, l Limits) (*Import, error) {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return s.unpack(ctx, l, nil, func(u *unpacker) error { return u.readFolder(ctx, from) })
}

// ImportLayers unpacks layers over each other, the lowest first, as the packages of
// container images have them: a file of the name .wh.NAME in one hides what those
// below have there, and .wh..wh..opq all in its folder. Of the variables in
// environment, each NAME=VALUE, those of [TakeEnvironment] are kept; the rest counts as
// left out. The limits are for all layers together.
//
// # Errors
//
// As for ImportTar; what opening and reading a layer says, which may wrap ErrContent.
func (s *Store) ImportLayers(ctx context.Context, layers []Layer, environment []string, l Limits) (*Import, error) {
	taken, left := TakeEnvironment(environment)
	return s.unpack(ctx, l, taken, func(u *unpacker) error {
		for _, name := range left {
			u.note("the variable %q: an image sets PATH, LANG, LC_… and TZ alone, to what they are for", name)
		}
		return u.readLayers(ctx, layers)
	})
}

// Scratch makes a folder in the store for what an import needs on its way, and
// returns it and what removes it. Where that is never called, a later import removes it.
func (s *Store) Scratch() (dir *os.Root, remove func() error, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, nil, err
	}
	store, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	sweep(store)
	name, held, err := begin(store)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	if dir, err = store.OpenRoot(name); err != nil {
		return nil, nil, errors.Join(err, removeAll(store, name), held.Close(), store.Close())
	}
	return dir, func() error {
		return errors.Join(dir.Close(), removeAll(store, name), held.Close(), store.Close())
	}, nil
}

func (s *Store) unpack(ctx context.Context, l Limits, environment map[string]string, read func(*unpacker) error) (made *Import, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := s.open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	sweep(dir)
	name, held, err := begin(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if made == nil || made.Image.dir != held {
			err = errors.Join(err, removeAll(dir, name), held.Close())
		}
	}()
	if err := dir.Mkdir(path.Join(name, rootName), 0o700); err != nil {
		return nil, err
	}
	root, err := dir.OpenRoot(path.Join(name, rootName))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u := newUnpacker(root, l)
	err = read(u)
	if err == nil {
		err = u.finish()
	}
	if err != nil {
		return nil, err
	}
	manifest := u.tree.manifest()
	if err := dir.WriteFile(path.Join(name, manifestName), manifest, 0o400); err != nil {
		return nil, err
	}
	files := bundle.Sum(manifest)
	digest := files
	if len(environment) > 0 {
		kept := settings(files, environment)
		if err := dir.WriteFile(path.Join(name, settingsName), kept, 0o400); err != nil {
			return nil, err
		}
		digest = bundle.Sum(kept)
	}
	made = &Import{Info: u.tree.info(digest, files, environment), Skipped: u.skipped, Left: u.left}
	made.Image, err = s.whole(ctx, digest)
	switch {
	case err == nil:
		return made, nil // it is here already
	case errors.Is(err, ErrDamaged):
		damaged := err
		if err = discard(dir, digest, nil); errors.Is(err, ErrInUse) {
			return nil, fmt.Errorf("%w; what has it must end before this can take its place: %w", damaged, err)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	made.Image, err = publish(dir, name, digest, held)
	if errors.Is(err, fs.ErrExist) { // another import of the same was faster
		made.Image, err = s.Image(digest)
	}
	if err != nil {
		made = nil
	}
	return made, err
}

// whole opens the image where it is what its digest says.
func (s *Store) whole(ctx context.Context, d bundle.Digest) (*Image, error) {
	i, err := s.Image(d)
	if err != nil {
		return nil, err
	}
	if err := i.Verify(ctx, nil); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// begin makes a folder for what is to become an image, and locks it.
func begin(dir *os.Root) (name string, held *os.File, err error) {
	for range 100 {
		name = unfinished + rand.Text()
		if err := dir.Mkdir(name, 0o700); err != nil {
			return "", nil, err
		}
		// Whoever sweeps may be faster.
		if held, err = lock(dir, name, unix.LOCK_EX); err == nil {
			return name, held, nil
		}
	}
	return "", nil, err
}

// publish makes what was unpacked count, once it stands on the disk.
func publish(dir *os.Root, name string, digest bundle.Digest, held *os.File) (*Image, error) {
	if err := unix.Syncfs(int(held.Fd())); err != nil {
		return nil, os.NewSyscallError("syncfs", err)
	}
	if err := dir.Rename(name, digest.Hex()); err != nil {
		return nil, err
	}
	i, err := openImage(dir, digest, held)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(syncFolder(dir), share(dir, digest.Hex(), held)); err != nil {
		i.root.Close()
		return nil, err
	}
	return i, nil
}

// openImage opens the image that lies in the folder held.
func openImage(dir *os.Root, digest bundle.Digest, held *os.File) (*Image, error) {
	root, err := dir.OpenFile(path.Join(digest.Hex(), rootName), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	i := &Image{digest: digest, files: digest, dir: held, root: root}
	if err := i.readSettings(); err != nil {
		root.Close()
		return nil, err
	}
	return i, nil
}

// share lets others hold what is held alone. Between the two somebody may have
// removed it.
func share(dir *os.Root, name string, held *os.File) error {
	err := unix.Flock(int(held.Fd()), unix.LOCK_SH)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(held.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		return err
	}
	return still(dir, name, held)
}

// still holds that the name means the folder.
func still(dir *os.Root, name string, held *os.File) error {
	info, err := held.Stat()
	if err != nil {
		return err
	}
	there, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(there, info) {
		return ErrNotFound
	}
	return err
}

func syncFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lock opens the folder and locks it, unless somebody else has a lock that
// excludes this one. The name may have come to mean another folder meanwhile,
// or none.
func lock(dir *os.Root, name string, how int) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err == nil {
		err = still(dir, name, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes what dead imports and removals left: what nobody has locked.
func sweep(dir *os.Root) {
	names, _ := list(dir, ".")
	for _, name := range names {
		if !strings.HasPrefix(name, unfinished) {
			continue
		}
		if held, err := lock(dir, name, unix.LOCK_EX); err == nil {
			_ = removeAll(dir, name) // the next one tries again
			held.Close()
		}
	}
}

// removeAll removes a folder whose folders nobody may write to.
func removeAll(dir *os.Root, name string) error {
	err := unlock(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, dir.RemoveAll(name))
}

// unlock makes the folders writable.
func unlock(dir *os.Root, name string) error {
	if err := dir.Chmod(name, 0o700); err != nil {
		return err
	}
	names, err := list(dir, name)
	for _, n := range names {
		info, lerr := dir.Lstat(path.Join(name, n))
		if lerr == nil && info.IsDir() {
			lerr = unlock(dir, path.Join(name, n))
		}
		err = errors.Join(err, lerr)
	}
	return err
}

// list returns the names in a folder in their order. They are bytes, which
// [fs.FS] would refuse where they are no UTF-8.
func list(dir *os.Root, name string) ([]string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Image opens the image and holds it: it is not removed before Close.
//
// # Errors
//
// ErrNotFound; ErrInUse while it is being imported or removed; one that wraps
// ErrDamaged when it has no root that can be read.
func (s *Store) Image(d bundle.Digest) (*Image, error) {
	dir, err := s.open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	held, err := lock(dir, d.Hex(), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	i, err := openImage(dir, d, held)
	if err != nil {
		held.Close()
		return nil, damage(err)
	}
	return i, nil
}

// List returns the digests of the images that are here.
func (s *Store) List() ([]bundle.Digest, error) {
	dir, err := s.open()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := list(dir, ".")
	var digests []bundle.Digest
	for _, name := range names {
		if d, err := bundle.ParseDigest("sha256:" + name); err == nil {
			digests = append(digests, d)
		}
	}
	return digests, err
}

// Info returns what the image's manifest says, which must be the one that its
// name is the digest of.
//
// # Errors
//
// ErrNotFound; ErrInUse; one that wraps ErrDamaged.
func (s *Store) Info(d bundle.Digest) (Info, error) {
	i, err := s.Image(d)
	if err != nil {
		return Info{}, err
	}
	defer i.Close()
	t, err := i.told()
	if err != nil {
		return Info{}, err
	}
	return t.info(d, i.files, i.environment), nil
}

// Verify opens the image for [Image.Verify].
//
// # Errors
//
// ErrNotFound; ErrInUse; as for [Image.Verify].
func (s *Store) Verify(ctx context.Context, d bundle.Digest) error {
	i, err := s.Image(d)
	if err != nil {
		return err
	}
	defer i.Close()
	return i.Verify(ctx, nil)
}

// Remove removes the image.
//
// # Errors
//
// ErrNotFound; ErrInUse when somebody holds it. What could not be removed whole
// counts no more, and the next import removes the rest.
func (s *Store) Remove(d bundle.Digest) error {
	dir, err := s.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	sweep(dir)
	return discard(dir, d, nil)
}

// discard removes the image unless keep, where it is not nil, wants it: keep is
// asked when nobody else can have the image any more, and nobody can open it.
func discard(dir *os.Root, d bundle.Digest, keep func(bundle.Digest) bool) error {
	held, err := lock(dir, d.Hex(), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer held.Close()
	if keep != nil && keep(d) {
		return ErrInUse
	}
	name := unfinished + rand.Text()
	if err := dir.Rename(d.Hex(), name); err != nil {
		return err
	}
	return removeAll(dir, name)
}

// Prune removes the images that keep does not want and nobody holds, and returns
// their digests. Keep is asked about an image before it is touched, and again when
// nobody else can have it any more: it must look afresh each time. So what got a
// name from somebody who held it until then is never removed.
func (s *Store) Prune(keep func(bundle.Digest) bool) ([]bundle.Digest, error) {
	dir, err := s.open()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	sweep(dir)
	here, err := s.List()
	var gone []bundle.Digest
	for _, d := range slices.DeleteFunc(here, keep) {
		switch rerr := discard(dir, d, keep); {
		case rerr == nil:
			gone = append(gone, d)
		case !errors.Is(rerr, ErrInUse) && !errors.Is(rerr, ErrNotFound):
			err = errors.Join(err, rerr)
		}
	}
	return gone, err
}
