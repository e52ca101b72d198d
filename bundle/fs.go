package bundle

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// FS returns the files of b as a read-only file system. Every file has mode
// 0444, every folder 0555, and no time.
func (b Bundle) FS() fs.FS { return bundleFS{b} }

type bundleFS struct{ b Bundle }

var _ fs.ReadDirFS = bundleFS{}

func (f bundleFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if data, _, ok := f.b.Text(name); ok {
		return &openFile{info{path.Base(name), int64(len(data)), 0o444}, *strings.NewReader(data)}, nil
	}
	entries := f.list(name)
	if entries == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openDir{info{path.Base(name), 0, fs.ModeDir | 0o555}, entries}, nil
}

func (f bundleFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	entries := f.list(name)
	if entries == nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return entries, nil
}

// list returns the entries of the folder name, or nil where there is no such
// folder. The root is there even when it is empty.
func (f bundleFS) list(name string) []fs.DirEntry {
	prefix := name + "/"
	var entries []fs.DirEntry
	if name == "." {
		prefix, entries = "", []fs.DirEntry{}
	}
	seen := map[string]bool{}
	for _, e := range f.b.Listing().entries() {
		rest, ok := strings.CutPrefix(e.Path, prefix)
		if !ok {
			continue
		}
		elem, _, folder := strings.Cut(rest, "/")
		if seen[elem] {
			continue
		}
		seen[elem] = true
		in := info{elem, e.Size, 0o444}
		if folder {
			in = info{elem, 0, fs.ModeDir | 0o555}
		}
		entries = append(entries, fs.FileInfoToDirEntry(in))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

type openFile struct {
	info
	strings.Reader
}

// Size settles which of the two embedded ones is meant; they agree.
func (f *openFile) Size() int64                { return f.info.Size() }
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info
	rest []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	var out []fs.DirEntry
	out, d.rest = d.rest[:n], d.rest[n:]
	return out, nil
}
