package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
)

// A dir is an open folder. It stays the folder that it was when it was opened,
// whatever is put into its place later.
type dir struct{ root *os.Root }

// openDir opens the folder at a path that an operator named; a link there is his
// own and is followed.
func openDir(name string) (dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return dir{}, err
	}
	return dir{root}, nil
}

func (d dir) close() { _ = d.root.Close() }

// errLink is for an entry that is not what it was a moment ago, or is a link.
var errLink = errors.New("it is a link, or was exchanged while it was read")

// sub opens the folder name in d, which must not be a link.
func (d dir) sub(name string) (dir, error) {
	was, err := d.root.Lstat(name)
	if err != nil {
		return dir{}, err
	}
	if !was.IsDir() {
		return dir{}, errLink
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return dir{}, err
	}
	// os.Root follows links that stay inside; what was opened must be the very
	// folder that was looked at.
	is, err := root.Stat(".")
	if err != nil || !os.SameFile(was, is) {
		_ = root.Close()
		return dir{}, cmp.Or(err, errLink)
	}
	return dir{root}, nil
}

// file opens the regular file name in d, which must not be a link, and tells its size.
func (d dir) file(name string) (*os.File, int64, error) {
	was, err := d.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !was.Mode().IsRegular() {
		return nil, 0, errLink
	}
	// A fifo that takes the file's place now must not make us wait for a writer.
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	is, err := f.Stat()
	if err == nil && (!is.Mode().IsRegular() || !os.SameFile(was, is)) {
		err = errLink
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, is.Size(), nil
}

// read returns the content of the regular file name, or errTooLarge when it has
// more than most bytes. It never reads more than one byte beyond. The content takes
// the place of what buf holds, where it has room.
func (d dir) read(name string, most int64, buf []byte) ([]byte, error) {
	f, size, err := d.file(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, errTooLarge
	}
	data := slices.Grow(buf[:0], int(size)+1)
	for {
		if int64(len(data)) > most {
			return nil, errTooLarge
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(int64(cap(data)), most+1)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

var errTooLarge = errors.New("too large")

// entries calls f for each entry of d, a few hundred at a time, so that a folder
// with millions of them is left early.
func (d dir) entries(f func(fs.DirEntry) error) error {
	h, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer h.Close()
	for {
		list, err := h.ReadDir(256)
		for _, e := range list {
			if err := f(e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sorted returns the entries of d in the bytewise order of their names, and
// counts them in left, which must not fall below zero.
func (d dir) sorted(left *int) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	err := d.entries(func(e fs.DirEntry) error {
		if *left--; *left < 0 {
			return errTooMany
		}
		all = append(all, e)
		return nil
	})
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

var errTooMany = errors.New("too many entries")

// kindOf says what an entry is; one that the file system does not tell of is
// looked at.
func (d dir) kindOf(e fs.DirEntry) fs.FileMode {
	t := e.Type()
	if t&fs.ModeIrregular != 0 {
		if info, err := d.root.Lstat(e.Name()); err == nil {
			t = info.Mode().Type()
		}
	}
	return t
}

// A walker gathers the files of one skill.
type walker struct {
	limits bundle.Limits // without zero fields
	folder string        // for people

	// add takes each file; the bytes are the walker's again when it returns. Nil:
	// the names alone are gathered, and nothing is read.
	add func(path string, data []byte) error

	left  int // entries that may still be seen
	total int64
	paths []string // in the order of the walk
	buf   []byte   // of the last file
	diags []Diagnostic
}

func newWalker(folder string, limits bundle.Limits) *walker {
	limits = limits.OrDefaults()
	return &walker{limits: limits, folder: folder, left: 8*limits.Files + 1024}
}

func (w *walker) leave(code, at, why, remedy string) {
	w.diags = append(w.diags, Diagnostic{Warning, code, at, 0, why + "; it is left out", remedy})
}

func (w *walker) limit(at, format string, args ...any) error {
	return fmt.Errorf("%w: skill %s: %s: %s", bundle.ErrLimit, visible(w.folder), visible(at), fmt.Sprintf(format, args...))
}

func (w *walker) unreadable(at string, err error) error {
	return fmt.Errorf("%w: skill %s: %s cannot be read: %w; make it readable or remove it", bundle.ErrContent, visible(w.folder), visible(at), errPart(err))
}

// walk gathers what is in d, which stands at the path at in the skill.
func (w *walker) walk(d dir, at string, depth int) error {
	list, err := d.sorted(&w.left)
	if errors.Is(err, errTooMany) {
		return w.limit(path.Join(at, "."), "more entries than a skill of at most %d files can have", w.limits.Files)
	}
	if err != nil {
		return w.unreadable(path.Join(at, "."), err)
	}
	for _, e := range list {
		if bundle.Ignored(e.Name()) {
			continue
		}
		p := path.Join(at, e.Name())
		if strings.ContainsRune(e.Name(), '/') || bundle.CheckPath(p) != nil {
			w.leave("path", path.Join(at, e.Name()), fmt.Sprintf("the name %s is not one that every system takes", short(e.Name())), "rename it")
			continue
		}
		if err := w.entry(d, e, p, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(d dir, e fs.DirEntry, p string, depth int) error {
	if depth > w.limits.Depth {
		return w.limit(p, "deeper than %d folders", w.limits.Depth)
	}
	if len(p) > w.limits.PathBytes {
		return w.limit(p, "a path of %d bytes, at most %d", len(p), w.limits.PathBytes)
	}
	switch t := d.kindOf(e); {
	case t.IsDir():
		sub, err := d.sub(e.Name())
		if errors.Is(err, errLink) {
			w.leave("link", p, "it is a link", "put the folder itself in its place")
			return nil
		}
		if err != nil {
			return w.unreadable(p, err)
		}
		defer sub.close()
		return w.walk(sub, p, depth+1)
	case t.IsRegular():
		return w.file(d, e.Name(), p)
	case t&fs.ModeSymlink != 0:
		w.leave("link", p, "it is a link, which is not followed", "put the file or folder itself in its place")
	default:
		w.leave("special-file", p, "it is neither a file nor a folder", "remove it")
	}
	return nil
}

func (w *walker) file(d dir, name, p string) error {
	if len(w.paths) >= w.limits.Files {
		return w.limit(p, "more than %d files", w.limits.Files)
	}
	if w.add == nil {
		w.paths = append(w.paths, p)
		return nil
	}
	most := min(w.limits.FileBytes, w.limits.TotalBytes-w.total)
	data, err := d.read(name, most, w.buf)
	switch {
	case errors.Is(err, errLink):
		w.leave("link", p, "it is a link", "put the file itself in its place")
		return nil
	case errors.Is(err, errTooLarge) && most == w.limits.FileBytes:
		return w.limit(p, "more than %d bytes", w.limits.FileBytes)
	case errors.Is(err, errTooLarge):
		return w.limit(p, "with it the skill has more than %d bytes", w.limits.TotalBytes)
	case err != nil:
		return w.unreadable(p, err)
	}
	w.total += int64(len(data))
	w.paths, w.buf = append(w.paths, p), data
	return w.add(p, data)
}
