//go:build unix

package box

import (
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// A walk goes through a folder that a script wrote, when no process of the run
// is left. It follows no link, crosses no mount point, opens nothing but folders
// and regular files that have no second name, and looks at no more than
// maxEntries entries. Paths are given in their bytewise order, folder by folder.
type walk struct {
	root  string                                // the folder's name in what skip gets
	skip  func(path, reason string)             // gets each entry that is not opened, with the root before it
	wants func(path string) bool                // asked for everything but folders
	file  func(f Node, path string, size int64) // gets each file that is wanted

	entries int // looked at
	dev     uint64
	cut     bool // not every entry was looked at
}

func (w *walk) run(folder Node) {
	st, err := folder.Stat()
	if err != nil {
		w.skip(w.root, "it cannot be read")
		return
	}
	w.dev = uint64(st.Dev)
	w.folder(folder, "", 0)
}

func (w *walk) skipped(path, reason string) { w.skip(w.root+"/"+path, reason) }

func (w *walk) folder(folder Node, prefix string, depth int) {
	for _, name := range w.list(folder, prefix) {
		w.entry(folder, name, prefix+name, depth)
	}
}

// list returns the names in the folder, sorted. Beyond the bound it returns
// those that the file system happened to give first, and says so.
func (w *walk) list(folder Node, prefix string) []string {
	names, more, err := readNames(folder, maxEntries-w.entries)
	if err != nil {
		w.cut = true
		w.skipped(prefix, "the folder cannot be read")
		return nil
	}
	if more {
		w.cut = true
		w.skipped(prefix, fmt.Sprintf("there are more than %d entries; the rest was not looked at", maxEntries))
	}
	w.entries += len(names)
	return names
}

// readNames returns at most that many names of the folder, sorted, and whether
// there are more.
func readNames(folder Node, most int) (names []string, more bool, err error) {
	if names, err = folder.Names(most + 1); err != nil {
		return nil, false, err
	}
	if len(names) > most {
		names, more = names[:most], true
	}
	slices.Sort(names)
	return names, more, nil
}

func (w *walk) entry(folder Node, name, path string, depth int) {
	// A fifo or a device is never opened: it is looked at first, and opened without
	// waiting, and looked at again through the descriptor.
	st, err := folder.Lstat(name)
	if err != nil {
		w.skipped(path, "it cannot be read")
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && !w.wants(path) {
		return
	}
	if err := bundle.CheckPath(path); err != nil {
		w.skipped(path, "its name cannot be used")
		return
	}
	if len(path) > bundle.DefaultPathBytes || depth >= bundle.DefaultDepth {
		w.skipped(path, "its path is too long or too deep")
		return
	}
	if why := unfit(st, w.dev); why != "" {
		w.skipped(path, why)
		return
	}
	f, err := folder.Open(name)
	if err != nil {
		w.skipped(path, "it cannot be read")
		return
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		w.skipped(path, "it cannot be read")
		return
	}
	switch why := unfit(st, w.dev); {
	case why != "":
		w.skipped(path, why)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		w.folder(f, path+"/", depth+1)
	default:
		w.file(f, path, st.Size)
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
