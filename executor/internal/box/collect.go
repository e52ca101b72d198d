//go:build unix

package box

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// Bounds of a collection that no policy sets.
const (
	maxEntries  = 10_000 // entries looked at, so that a million files cost no more than that
	maxNotes    = 20     // entries named one by one
	maxPathText = 256    // bytes of a path in a note
)

// Collect reads the regular files below outputs/, at most size bytes and count
// files in all, in the bytewise order of their paths. Each entry that is not
// collected is named in a note with the reason. It is called when the last
// process of the run is gone.
//
// It follows no link, crosses no mount point and opens nothing but regular files
// that have no second name.
func (r *Run) Collect(size int64, count int) ([]bundle.File, []string) {
	c := &collection{size: size, count: count, entries: maxEntries}
	var st unix.Stat_t
	if err := unix.Fstat(int(r.outputs.Fd()), &st); err != nil {
		return nil, []string{"outputs/ could not be read"}
	}
	c.dev = uint64(st.Dev)
	c.walk(r.outputs, "", 0)
	c.beside(r.folder)
	if c.unnamed > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%d more entries of outputs/ were not collected", c.unnamed))
	}
	return c.files, c.notes
}

type collection struct {
	size    int64 // bytes left
	count   int   // files left
	entries int   // entries left to look at
	dev     uint64
	files   []bundle.File
	notes   []string
	unnamed int
}

func (c *collection) skip(path, reason string) {
	if len(c.notes) >= maxNotes {
		c.unnamed++
		return
	}
	c.notes = append(c.notes, fmt.Sprintf("outputs/%s was not collected: %s", shown(path), reason))
}

// shown writes a path that a script chose so that it can stand in a line.
func shown(path string) string {
	if len(path) > maxPathText {
		path = path[:maxPathText] + "…"
	}
	q := fmt.Sprintf("%q", path)
	return q[1 : len(q)-1]
}

func (c *collection) walk(folder *os.File, prefix string, depth int) {
	for _, name := range c.list(folder, prefix) {
		c.entry(folder, name, prefix+name, depth)
	}
}

// list returns the names in the folder, sorted. Beyond the bound it returns
// those that the file system happened to give first, and says so.
func (c *collection) list(folder *os.File, prefix string) []string {
	names, err := folder.Readdirnames(c.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		c.skip(prefix, "the folder cannot be read")
		return nil
	}
	if len(names) > c.entries {
		names = names[:c.entries]
		c.skip(prefix, fmt.Sprintf("there are more than %d entries; the rest was not looked at", maxEntries))
	}
	c.entries -= len(names)
	slices.Sort(names)
	return names
}

func (c *collection) entry(folder *os.File, name, path string, depth int) {
	if err := bundle.CheckPath(path); err != nil {
		c.skip(path, "its name cannot be used")
		return
	}
	if len(path) > bundle.DefaultPathBytes || depth >= bundle.DefaultDepth {
		c.skip(path, "its path is too long or too deep")
		return
	}
	// A fifo or a device is never opened: it is looked at first, and opened without
	// waiting, and looked at again through the descriptor.
	var st unix.Stat_t
	if err := unix.Fstatat(int(folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		c.skip(path, "it cannot be read")
		return
	}
	if why := unfit(st, c.dev); why != "" {
		c.skip(path, why)
		return
	}
	f, err := openAt(folder, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		c.skip(path, "it cannot be read")
		return
	}
	defer f.Close()
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		c.skip(path, "it cannot be read")
		return
	}
	switch why := unfit(st, c.dev); {
	case why != "":
		c.skip(path, why)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		c.walk(f, path+"/", depth+1)
	default:
		c.file(f, path, st.Size)
	}
}

// unfit says why an entry is neither a folder nor a file that can be collected.
func unfit(st unix.Stat_t, dev uint64) string {
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return "it is a link"
	case kind != unix.S_IFREG && kind != unix.S_IFDIR:
		return "it is not a regular file"
	case uint64(st.Dev) != dev:
		return "it lies on another file system"
	case kind == unix.S_IFREG && st.Nlink != 1:
		return "it has a second name (a hard link)"
	}
	return ""
}

func (c *collection) file(f *os.File, path string, size int64) {
	switch {
	case c.count <= 0:
		c.skip(path, "there are too many files")
		return
	case size > c.size:
		c.skip(path, fmt.Sprintf("it has %d bytes, and %d are left of the limit", size, c.size))
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, c.size+1))
	switch {
	case err != nil:
		c.skip(path, "it cannot be read")
	case int64(len(data)) > c.size:
		c.skip(path, "it grew over the limit while it was read")
	default:
		c.size -= int64(len(data))
		c.count--
		c.files = append(c.files, bundle.File{Path: path, Data: data})
	}
}

// beside names what was written next to outputs/, such as by the path
// outputs/../x.
func (c *collection) beside(folder *os.File) {
	for _, name := range c.list(folder, "../") {
		if !slices.Contains([]string{SkillDir, InputsDir, OutputsDir, TmpDir, HomeDir}, name) {
			c.skip("../"+name, "it lies outside outputs/")
		}
	}
}
