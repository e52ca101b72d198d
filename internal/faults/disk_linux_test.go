package faults_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A disk is what a folder is now, and what of it would be there if the power failed.
// What was written to a file is kept for sure once the file was flushed, and a name
// once its folder was; before, any part of it may be there or not. Of the names of one
// folder those that came first are there first, as in every journal.
type disk struct {
	now, kept map[string]*node
	pending   []naming
}

// A node is a file or a folder.
type node struct {
	dir       bool
	mode      fs.FileMode
	now, kept []byte
	since     []writing // the last flush
}

// A writing puts data at a place, or cuts the file there.
type writing struct {
	at   int64
	data []byte
	cuts bool
}

// A naming changes names in a folder; a nil node takes one away.
type naming struct {
	folder string
	to     map[string]*node
}

// diskOf returns a disk with all that is in the folder, as if it had been there for long.
func diskOf(folder string) (*disk, error) {
	d := &disk{now: map[string]*node{}, kept: map[string]*node{}}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || volatile(path) {
			return err
		}
		in, err := e.Info()
		if err != nil {
			return err
		}
		n := &node{dir: e.IsDir(), mode: in.Mode().Perm()}
		if !n.dir {
			if n.now, err = os.ReadFile(path); err != nil {
				return err
			}
			n.kept = n.now
		}
		d.now[path], d.kept[path] = n, n
		return nil
	})
	return d, err
}

// volatile is what SQLite makes anew after a crash: it writes it by mapping it.
func volatile(path string) bool { return strings.HasSuffix(path, "-shm") }

func (d *disk) name(to map[string]*node) {
	var folder string
	for path, n := range to {
		folder = filepath.Dir(path)
		if delete(d.now, path); n != nil {
			d.now[path] = n
		}
	}
	d.pending = append(d.pending, naming{folder, to})
}

func (w writing) on(b []byte) []byte {
	if w.cuts {
		return append(slices.Clone(b[:min(w.at, int64(len(b)))]), make([]byte, max(0, w.at-int64(len(b))))...)
	}
	end := w.at + int64(len(w.data))
	b = append(slices.Clone(b), make([]byte, max(0, end-int64(len(b))))...)
	copy(b[w.at:], w.data)
	return b
}

func (n *node) write(w writing) {
	n.now = w.on(n.now)
	n.since = append(n.since, w)
}

// flush keeps what is in the file, or the names in the folder.
func (d *disk) flush(path string) {
	n := d.now[path]
	if n == nil {
		return
	}
	if !n.dir {
		n.kept, n.since = n.now, nil
		return
	}
	var rest []naming
	for _, p := range d.pending {
		if p.folder != path {
			rest = append(rest, p)
			continue
		}
		apply(d.kept, p)
	}
	d.pending = rest
}

func apply(names map[string]*node, p naming) {
	for path, n := range p.to {
		if delete(names, path); n != nil {
			names[path] = n
		}
	}
}

// A loss is a way for the power to fail: what of the names of a folder, and what of
// the writings to a file, is there afterwards.
type loss struct {
	name     string
	names    func(n int) int // how many of n come first
	contents func(n *node) []byte
}

func all(n int) int       { return n }
func none(int) int        { return 0 }
func kept(n *node) []byte { return n.kept }
func now(n *node) []byte  { return n.now }

// zeros is a file that has its size already, and not its data.
func zeros(n *node) []byte {
	return append(slices.Clone(n.kept[:min(len(n.kept), len(n.now))]), make([]byte, max(0, len(n.now)-len(n.kept)))...)
}

// half is a file with the first half of what was written, the last of it torn.
func half(n *node) []byte {
	b := n.kept
	for i, w := range n.since[:(len(n.since)+1)/2] {
		if i == (len(n.since)+1)/2-1 {
			w.data = w.data[:len(w.data)/2]
		}
		b = w.on(b)
	}
	return b
}

// losses are the ways that are tried at each moment; the last is another each time.
func losses(seed uint64) []loss {
	random := rand.New(rand.NewPCG(seed, 1))
	return []loss{
		{"nothing that was not flushed", none, kept},
		{"names without data", all, kept},
		{"names and sizes", all, zeros},
		{"names and half of the data", all, half},
		{"data without names", none, now},
		{"this and that", func(n int) int { return random.IntN(n + 1) }, func(n *node) []byte {
			b := n.kept
			for _, w := range n.since {
				if random.IntN(2) == 0 {
					b = w.on(b)
				}
			}
			return b
		}},
	}
}

// after is what is there after the power failed.
func (d *disk) after(l loss) map[string]node {
	names := map[string]*node{}
	for path, n := range d.kept {
		names[path] = n
	}
	count := map[string]int{}
	for _, p := range d.pending {
		count[p.folder]++
	}
	var folders []string
	for f := range count {
		folders = append(folders, f)
	}
	slices.Sort(folders)
	for _, f := range folders {
		count[f] = l.names(count[f])
	}
	for _, p := range d.pending {
		if count[p.folder]--; count[p.folder] >= 0 {
			apply(names, p)
		}
	}
	there := map[string]node{}
	for _, path := range sorted(names) { // folders come before what is in them
		if _, has := there[filepath.Dir(path)]; !has && len(there) > 0 {
			continue // its folder has no name
		}
		n := *names[path]
		if !n.dir {
			n.now = l.contents(&n)
		}
		there[path] = n
	}
	return there
}

func sorted(names map[string]*node) (all []string) {
	for path := range names {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// lay makes folder what there is.
func lay(folder string, there map[string]node) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	names := map[string]*node{}
	for path, n := range there {
		names[path] = &n
	}
	for _, path := range sorted(names) {
		n := there[path]
		if n.dir {
			if err := os.Mkdir(path, n.mode); err != nil {
				return err
			}
		} else if err := os.WriteFile(path, n.now, n.mode); err != nil {
			return err
		}
	}
	return nil
}

// TestDisk: what the replay is there for. A file that is replaced as it should be is
// whole in every way for the power to fail; one of whose flushes is left out is not.
func TestDisk(t *testing.T) {
	const folder, path, tmp = "/d", "/d/f", "/d/f.tmp"
	for _, tt := range []struct {
		name  string
		flush string // f: the file, d: its folder
		whole bool   // old or new at each moment
		lasts bool   // new at the end
	}{
		{"all of it", "fd", true, true},
		{"the file is not flushed", "d", false, false},
		{"the folder is not flushed", "f", true, false},
		{"neither is", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := &node{mode: 0o600, now: []byte("old"), kept: []byte("old")}
			top := &node{dir: true, mode: 0o700}
			d := &disk{now: map[string]*node{folder: top, path: old}, kept: map[string]*node{folder: top, path: old}}
			whole := true
			look := func() (lasts bool) {
				lasts = true
				for seed := range uint64(8) {
					for _, l := range losses(seed) {
						is := d.after(l)[path].now
						whole = whole && (string(is) == "old" || string(is) == "new and longer")
						lasts = lasts && string(is) == "new and longer"
					}
				}
				return lasts
			}
			n := &node{mode: 0o600}
			d.name(map[string]*node{tmp: n})
			look()
			n.write(writing{at: 0, data: []byte("new and ")})
			look()
			n.write(writing{at: 8, data: []byte("longer")})
			look()
			if strings.Contains(tt.flush, "f") {
				d.flush(tmp)
			}
			d.name(map[string]*node{tmp: nil, path: n})
			look()
			if strings.Contains(tt.flush, "d") {
				d.flush(folder)
			}
			if lasts := look(); lasts != tt.lasts || whole != tt.whole {
				t.Errorf("it is old or new: %v, new at the end: %v; want %v, %v", whole, lasts, tt.whole, tt.lasts)
			}
			if !bytes.Equal(d.now[path].now, []byte("new and longer")) {
				t.Errorf("it is %q", d.now[path].now)
			}
		})
	}
}
