//go:build unix

package box

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/gate"
)

// Bounds of a collection that no policy sets.
const (
	maxEntries = 10_000 // entries looked at in each folder of the run, so that a million files cost no more than that
	maxNotes   = 20     // entries named one by one

	// maxCompared is the product of bytes, of patterns by paths, that is compared: 64
	// patterns of 30 bytes with 7,000 paths of 40. It takes about a second at worst.
	maxCompared = 1 << 29
)

// A Harvest says what is collected of a run.
type Harvest struct {
	Bytes    int64    // at most, in all
	Files    int      // at most, in all
	Patterns []string // of the files below outputs/ that are wanted; empty: all. See [gate.MatchOutput]
}

// Collect reads the regular files below outputs/ and, with their paths below
// inputs/, those input files that are new or have other bytes than they were
// laid out with. They come in the bytewise order of their paths. What is wanted
// and not collected is named in a note with the reason, and so is what the
// script wrote where nothing is kept. Collect is called once, when the last
// process of the run is gone.
//
// It follows no link, crosses no mount point and opens nothing but folders and
// regular files that have no second name.
func (r *Run) Collect(h Harvest) ([]bundle.File, []string) {
	c := &collection{size: h.Bytes, count: h.Files, taken: map[string]taken{}}
	look := r.nodes()
	c.outputs(look.Outputs, h.Patterns)
	c.inputs(look.Inputs, r.given)
	if look.Around != nil {
		c.beside(look.Around)
	}
	if c.unnamed > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%d more entries were not collected", c.unnamed))
	}
	slices.SortFunc(c.files, func(a, b bundle.File) int { return cmp.Compare(a.Path, b.Path) })
	if note := r.thrown(look.Skill); note != "" {
		c.notes = append(c.notes, note)
	}
	return c.files, c.notes
}

type collection struct {
	size    int64 // bytes left
	count   int   // files left
	files   []bundle.File
	taken   map[string]taken
	notes   []string
	unnamed int
}

// taken is what a name among the collected files stands for.
type taken int8

const (
	_ taken = iota
	aFolder
	aFile
)

// skip names an entry that is not collected. Its path is that from the run's folder.
func (c *collection) skip(path, reason string) {
	if len(c.notes) >= maxNotes {
		c.unnamed++
		return
	}
	c.notes = append(c.notes, fmt.Sprintf("%s was not collected: %s", notes.Path(path), reason))
}

// outputs collects what lies below outputs/.
func (c *collection) outputs(outputs Node, patterns []string) {
	var unasked notes.List
	left, each := maxCompared, 0
	for _, p := range patterns {
		each += len(p)
	}
	w := &walk{
		root: OutputsDir, skip: c.skip,
		wants: func(path string) bool {
			if left >= 0 {
				left -= each * len(path)
			}
			switch {
			case left < 0:
				c.skip(OutputsDir+"/"+path, "there is too much to compare with the output patterns")
			case gate.MatchOutput(patterns, path):
				return true
			default:
				unasked.Add(path)
			}
			return false
		},
		file: func(f Node, path string, size int64) {
			c.file(f, OutputsDir+"/"+path, path, size)
		},
	}
	w.run(outputs)
	if note := notes.Unasked(unasked); note != "" {
		c.notes = append(c.notes, note)
	}
}

// inputs collects the input files that the script changed or added.
func (c *collection) inputs(inputs Node, were bundle.Bundle) {
	seen := map[string]bool{}
	w := &walk{
		root: InputsDir, skip: func(path, reason string) { seen[path] = true; c.skip(path, reason) },
		wants: func(path string) bool { seen[InputsDir+"/"+path] = true; return true },
		file: func(f Node, path string, size int64) {
			text, _, given := were.Text(path)
			if given && int64(len(text)) == size && same(f, text) {
				return
			}
			c.file(f, InputsDir+"/"+path, InputsDir+"/"+path, size)
		},
	}
	w.run(inputs)
	if w.cut {
		return
	}
	var deleted notes.List
	for _, p := range were.Paths() {
		if full := InputsDir + "/" + p; !seen[full] && !hasParent(seen, full) {
			deleted.Add(full)
		}
	}
	if note := notes.Deleted(deleted); note != "" {
		c.notes = append(c.notes, note)
	}
}

// hasParent reports whether one of the folders above the path is among the
// paths: one that stands there could not be looked into, or is no folder now.
func hasParent(paths map[string]bool, p string) bool {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if paths[p] {
			return true
		}
	}
	return false
}

// same reports whether the file holds the text and nothing more. It leaves f at
// its beginning.
func same(f Node, text string) bool {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	defer f.Rewind()
	for {
		n, err := f.Read(buf[:])
		if n > len(text) || string(buf[:n]) != text[:n] {
			return false
		}
		text = text[n:]
		if err != nil {
			return errors.Is(err, io.EOF) && text == ""
		}
	}
}

// file keeps the file that lies at that path of the run's folder as name, unless
// it is too much.
func (c *collection) file(f Node, at, name string, size int64) {
	switch {
	case c.isTaken(name):
		c.skip(at, "outputs/ has a file of that name")
		return
	case c.count <= 0:
		c.skip(at, "there are too many files")
		return
	case size > c.size:
		c.skip(at, fmt.Sprintf("it has %d bytes, and %d are left of the limit", size, c.size))
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, c.size+1))
	switch {
	case err != nil:
		c.skip(at, "it cannot be read")
	case int64(len(data)) > c.size:
		c.skip(at, "it grew over the limit while it was read")
	default:
		c.size -= int64(len(data))
		c.count--
		c.files = append(c.files, bundle.File{Path: name, Data: data})
		c.taken[name] = aFile
		for d := path.Dir(name); d != "." && c.taken[d] == 0; d = path.Dir(d) {
			c.taken[d] = aFolder
		}
	}
}

// isTaken reports whether the name, or a folder above it, is that of a file, or
// the name that of a folder.
func (c *collection) isTaken(name string) bool {
	if c.taken[name] != 0 {
		return true
	}
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if c.taken[d] == aFile {
			return true
		}
	}
	return false
}

// beside names what was written next to outputs/, such as by the path
// outputs/../x.
func (c *collection) beside(folder Node) {
	w := &walk{root: OutputsDir + "/..", skip: c.skip}
	for _, name := range w.list(folder, "") {
		if !slices.Contains([]string{SkillDir, InputsDir, OutputsDir, TmpDir, HomeDir}, name) {
			w.skipped(name, "it lies outside outputs/")
		}
	}
}
