package skill

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
)

// ErrArchive is wrapped by the error for an archive that is refused because two
// programs may read it in two ways, or because it holds what no skill can.
var ErrArchive = fmt.Errorf("%w: archive refused", bundle.ErrContent)

// An ArchiveError says why an archive is refused, all of it. It wraps one of the
// errors of package bundle, or ErrArchive.
type ArchiveError struct {
	Entry  string // its name as the archive has it; empty: the archive itself
	Text   string // what is wrong
	Remedy string // what to do; may be empty
	Err    error
}

// Error returns entry, reason and remedy in one line, with no character that
// steers a terminal.
func (e *ArchiveError) Error() string {
	s := "archive: "
	if e.Entry != "" {
		s += "entry " + short(e.Entry) + ": "
	}
	s += clip(e.Text, 300)
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return visible(s)
}

// Unwrap returns what the error is one of.
func (e *ArchiveError) Unwrap() error { return e.Err }

func badZip(entry, remedy, format string, args ...any) error {
	return &ArchiveError{entry, fmt.Sprintf(format, args...), remedy, ErrArchive}
}

const repack = "pack the folder again, with any common program"

// ReadZip reads the files of one skill from the zip archive in r, which has size
// bytes. SKILL.md stands at the top, or below one folder in which everything
// is, which is taken off. Backslashes part names as slashes do. What a desktop
// or version control leaves beside a skill (see [bundle.Ignored]; __MACOSX too)
// is checked and left out.
//
// Nothing is unpacked before every entry was looked at, and no size that the
// archive states is trusted: unpacking stops at it. The archive is refused whole,
// with the entry's name, when a name is not plain or stands twice, when an entry
// is a link or a device, is encrypted, or needs another method than deflate,
// when bytes belong to two entries or to none, or when two places say different
// things of one entry. See FromFiles for what to do next.
//
// # Errors
//
// An *ArchiveError that wraps bundle.ErrPath, bundle.ErrTwins, bundle.ErrLimit or
// ErrArchive, each of which wraps bundle.ErrContent. An error of r otherwise.
func ReadZip(r io.ReaderAt, size int64, limits bundle.Limits) ([]bundle.File, []Diagnostic, error) {
	z, kept, err := openZip(r, size, limits)
	if err != nil {
		return nil, nil, err
	}
	files := make([]bundle.File, 0, len(kept))
	for _, e := range kept {
		data, err := z.unpack(e, nil)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, bundle.File{Path: e.path, Data: data})
	}
	slices.SortFunc(files, func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) })
	return files, z.diags, nil
}

// ReadZipInto is [ReadZip] and [FromFiles] for a skill that need not be in memory:
// each file goes to keep when it was unpacked, and is forgotten. What ReadZip says
// beside the files stands among the diagnostics.
//
// # Errors
//
// Those of [ReadZip], of [FromFiles], and of keep.
func ReadZipInto(r io.ReaderAt, size int64, limits bundle.Limits, keep Keeper) (Outline, bundle.Content, error) {
	z, kept, err := openZip(r, size, limits)
	if err != nil {
		return Outline{}, nil, err
	}
	read := &reading{keep: keep}
	var buf []byte
	for _, e := range kept {
		if buf, err = z.unpack(e, buf); err != nil {
			return Outline{}, nil, err
		}
		if err := read.add(e.path, buf); err != nil {
			return Outline{}, nil, err
		}
	}
	return read.outline(z.diags)
}

// openZip looks at every entry of the archive, and returns those that are files of
// the skill.
func openZip(r io.ReaderAt, size int64, limits bundle.Limits) (*zipReader, []*zipEntry, error) {
	z := &zipReader{r: r, size: size, limits: limits.OrDefaults()}
	if err := z.directory(); err != nil {
		return nil, nil, err
	}
	kept, err := z.choose()
	if err != nil {
		return nil, nil, err
	}
	return z, kept, z.layout()
}

type zipReader struct {
	r       io.ReaderAt
	size    int64
	limits  bundle.Limits
	entries []*zipEntry // in the order of the directory
	start   int64       // where the directory begins
	diags   []Diagnostic
	flate   inflater
}

// choose checks every name and returns the entries that are files of the skill,
// with their paths in it.
func (z *zipReader) choose() ([]*zipEntry, error) {
	seen := make(map[string]bool, len(z.entries))
	var kept []*zipEntry
	slashes := 0
	for _, e := range z.entries {
		e.path = strings.ReplaceAll(e.name, `\`, "/")
		if e.path != e.name {
			slashes++
		}
		e.path, e.folder = strings.CutSuffix(e.path, "/")
		if err := bundle.CheckPath(e.path); err != nil {
			return nil, &ArchiveError{e.name, plainText(err), "rename it, or leave it out", bundle.ErrPath}
		}
		if seen[e.path] {
			return nil, &ArchiveError{e.name, "it stands twice", repack, bundle.ErrPath}
		}
		seen[e.path] = true
		if err := e.checkKind(); err != nil {
			return nil, err
		}
		if !e.folder && !ignored(e.path) && !desktopFile(e.path) {
			kept = append(kept, e)
		}
	}
	if slashes > 0 {
		z.diags = append(z.diags, Diagnostic{Note, "archive-backslash", ".", 0, fmt.Sprintf("%d names have backslashes, which are taken for slashes", slashes), ""})
	}
	z.strip(kept)
	return kept, z.check(kept)
}

// desktopFile reports whether macOS has put the file into an archive beside the
// one that it tells of.
func desktopFile(p string) bool {
	return strings.HasPrefix(p, "__MACOSX/") && strings.HasPrefix(path.Base(p), "._")
}

// strip takes off the one folder in which everything is.
func (z *zipReader) strip(kept []*zipEntry) {
	top := ""
	for i, e := range kept {
		first, _, below := strings.Cut(e.path, "/")
		if !below || i > 0 && first != top {
			return
		}
		top = first
	}
	for _, e := range kept {
		e.path = e.path[len(top)+1:]
	}
	if len(kept) > 0 {
		z.diags = append(z.diags, Diagnostic{Note, "archive-folder", ".", 0, fmt.Sprintf("the folder %s, in which everything is, is taken off", short(top)), ""})
	}
}

// plainText is an error of package bundle without what all of them begin with.
func plainText(err error) string {
	return strings.TrimPrefix(err.Error(), bundle.ErrContent.Error()+": ")
}

// check holds the names and the sizes that the archive states against the limits.
func (z *zipReader) check(kept []*zipEntry) error {
	names := make([]bundle.Entry, len(kept))
	total := int64(0)
	found := ""
	for i, e := range kept {
		names[i].Path = e.path
		if n := strings.Count(e.path, "/") + 1; len(e.path) > z.limits.PathBytes || n > z.limits.Depth {
			return &ArchiveError{e.name, fmt.Sprintf("its path has %d bytes and %d elements, at most %d and %d", len(e.path), n, z.limits.PathBytes, z.limits.Depth), "shorten it", bundle.ErrLimit}
		}
		if e.size > z.limits.FileBytes {
			return &ArchiveError{e.name, fmt.Sprintf("it has %d bytes, at most %d", e.size, z.limits.FileBytes), "leave it out, or make it smaller", bundle.ErrLimit}
		}
		if total += e.size; total > z.limits.TotalBytes {
			return &ArchiveError{e.name, fmt.Sprintf("with it the skill has more than %d bytes", z.limits.TotalBytes), "leave out what no script needs", bundle.ErrLimit}
		}
		if path.Base(e.path) == markdown && (found == "" || len(e.path) < len(found)) {
			found = e.path
		}
	}
	if _, err := bundle.NewListing(names, nil, z.limits); err != nil {
		kind := bundle.ErrContent
		for _, k := range []error{bundle.ErrPath, bundle.ErrTwins, bundle.ErrLimit} {
			if errors.Is(err, k) {
				kind = k
			}
		}
		remedy := "rename one of them, or leave it out"
		if kind == bundle.ErrLimit {
			remedy = "leave out what no script needs"
		}
		return &ArchiveError{"", plainText(err), remedy, kind}
	}
	switch found {
	case markdown:
		return nil
	case "":
		return badZip("", "pack the folder that has it", "there is no %s in it", markdown)
	}
	return badZip("", "pack the folder "+short(path.Dir(found))+" alone", "%s is not at its top but at %s", markdown, short(found))
}
