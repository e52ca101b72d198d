//go:build unix

package box

import (
	"cmp"
	"path"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"golang.org/x/sys/unix"
)

// thrown names the files in the skill's folder that the bundle does not have, or
// has otherwise: the script wrote them, and they go with the folder.
//
// A file of the bundle counts as written when its size differs or its time is
// later than the laying out. Its bytes are not compared: a skill may have 32 MiB,
// and this is asked after each run. What that misses is an edit that keeps the
// size and sets the time back, or comes in the same tick as the laying out; a
// note less is all the harm. The time of the last change (ctime) cannot be set
// back, but changes with the mode too, and chmod is no write.
func (r *Run) thrown(skill Node) string {
	st, err := skill.Stat()
	if err != nil {
		return ""
	}
	t := &thrown{run: r, dev: uint64(st.Dev), left: maxEntries, outputs: cmp.Or(r.reach, "../"+OutputsDir+"/")}
	t.folder(skill, "", 0)
	return notes.Thrown(t.list, t.outputs)
}

type thrown struct {
	run     *Run
	dev     uint64
	left    int // entries to look at
	list    notes.List
	outputs string // how the script reaches outputs/ from its folder
}

func (t *thrown) folder(folder Node, prefix string, depth int) {
	names, more, err := readNames(folder, t.left)
	if err != nil {
		return
	}
	t.left -= len(names)
	t.list.AtLeast = t.list.AtLeast || more
	for _, name := range names {
		if bundle.Ignored(name) || path.Ext(name) == ".pyc" {
			continue
		}
		t.entry(folder, name, prefix+name, depth)
	}
}

func (t *thrown) entry(folder Node, name, path string, depth int) {
	st, err := folder.Lstat(name)
	if err != nil {
		return
	}
	text, _, ours := t.run.bundle.Text(path)
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK && !ours && (path == InputsDir || path == OutputsDir): // see linkAll
		if path == OutputsDir {
			t.outputs = OutputsDir + "/"
		}
	case kind == unix.S_IFDIR && depth < bundle.DefaultDepth:
		f, err := folder.Open(name)
		if err != nil {
			return
		}
		defer f.Close()
		if st, err := f.Stat(); err == nil && uint64(st.Dev) == t.dev && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			t.folder(f, path+"/", depth+1)
		}
	case kind == unix.S_IFREG && ours && st.Size == int64(len(text)) && !modified(st).After(t.run.laid):
	default:
		t.list.Add(path)
	}
}
