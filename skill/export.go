package skill

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/tracon-go/tracon/bundle"
)

// WriteZip writes the skill c as a zip archive, one file at a time, with SKILL.md
// at its top. The same bundle gives the same bytes, whatever the version of the
// compiler: the files are stored and not packed, in the order of their paths and
// without times. [ReadZip] and [FromFiles] make a skill of the same digest of it. A
// bundle that no folder holds, such as that of a stored script, is refused.
func WriteZip(w io.Writer, c bundle.Content) error {
	if err := portable(c); err != nil {
		return err
	}
	out := zip.NewWriter(w)
	for _, p := range c.Listing().Paths() {
		if desktopFile(p) {
			return fmt.Errorf("%w: %s is left out when an archive is read; remove it from the skill", bundle.ErrContent, short(p))
		}
		data, err := bundle.Read(c, p)
		if err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		h := &zip.FileHeader{
			Name: p, Method: zip.Store, ReaderVersion: 20, CreatorVersion: 3<<8 | 20, // Unix
			CRC32: crc32.ChecksumIEEE(data), CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
			//lint:ignore SA1019 CreateRaw writes the old fields as they are and never looks at Modified
			ModifiedDate: 1<<5 | 1, // the 1st of January 1980, where such times begin
			Flags:        1 << 11,  // the name is UTF-8
		}
		h.SetMode(0o644)
		f, err := out.CreateRaw(h)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// portable says why reading what is written of b would give another digest.
func portable(c bundle.Content) error {
	l := c.Listing()
	if _, ok := l.Entry(markdown); !ok {
		return fmt.Errorf("%w: it has no %s, so no folder holds it", bundle.ErrContent, markdown)
	}
	decl := l.Declaration()
	if e, ok := l.Entry(DeclarationName); ok && e.Digest != bundle.Sum(decl) || !ok && len(decl) > 0 {
		return fmt.Errorf("%w: its declaration is not that of a file %s, so no folder holds it", bundle.ErrContent, DeclarationName)
	}
	if i := slices.IndexFunc(l.Paths(), ignored); i >= 0 {
		return fmt.Errorf("%w: %s is left out when a folder is read; remove it from the skill", bundle.ErrContent, short(l.Paths()[i]))
	}
	return nil
}

// WriteFolder writes the skill c, one file at a time, into the folder dir, which
// must be empty or not be there; its parent must be. [Read] finds the same digest
// there. No link is followed, and no file is replaced: where one appears meanwhile,
// writing fails. After an error nothing of what was written is left.
func WriteFolder(dir string, c bundle.Content) (err error) {
	if err := portable(c); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("writing the skill into %s: %w", visible(dir), err) }
	made := false
	switch err := os.Mkdir(dir, 0o755); {
	case err == nil:
		made = true
	case !errors.Is(err, fs.ErrExist):
		return fail(err)
	}
	was, err := os.Lstat(dir)
	if err != nil {
		return fail(err)
	}
	if !was.IsDir() {
		return fail(errors.New("it is a link or a file; name a new or empty folder"))
	}
	d, err := openDir(dir)
	if err != nil {
		return fail(err)
	}
	defer d.close()
	if is, err := d.root.Stat("."); err != nil || !os.SameFile(was, is) {
		return fail(errLink)
	}
	if err := d.entries(func(fs.DirEntry) error { return errFound }); err != nil {
		if errors.Is(err, errFound) {
			err = errors.New("it is not empty; name a new or empty folder")
		}
		return fail(err)
	}
	written := &writer{root: d.root, folders: map[string]bool{".": true}}
	if err := written.all(c); err != nil {
		written.undo()
		if made {
			_ = os.Remove(dir) // only when it is empty
		}
		return fail(err)
	}
	return nil
}

// A writer writes below a folder and knows what it has made there.
type writer struct {
	root    *os.Root
	folders map[string]bool
	made    []string // in the order of making
}

func (w *writer) all(c bundle.Content) error {
	for _, p := range c.Listing().Paths() {
		if err := w.folder(path.Dir(p)); err != nil {
			return err
		}
		data, err := bundle.Read(c, p)
		if err != nil {
			return err
		}
		if err := w.file(p, data); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) folder(p string) error {
	if w.folders[p] {
		return nil
	}
	if err := w.folder(path.Dir(p)); err != nil {
		return err
	}
	if err := w.root.Mkdir(p, 0o755); err != nil {
		return err
	}
	w.folders[p], w.made = true, append(w.made, p)
	return nil
}

func (w *writer) file(p string, data []byte) error {
	f, err := w.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.made = append(w.made, p)
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (w *writer) undo() {
	for _, p := range slices.Backward(w.made) {
		_ = w.root.Remove(p)
	}
}
