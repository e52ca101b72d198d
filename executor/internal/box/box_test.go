//go:build unix

package box

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func instance(t testing.TB) *Instance {
	t.Helper()
	i, warning, err := OpenInstance(filepath.Join(t.TempDir(), "run"), nil)
	if err != nil || warning != nil {
		t.Fatal(err, warning)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func newRun(t testing.TB, skill, inputs bundle.Bundle) *Run {
	t.Helper()
	r, err := instance(t).NewRun()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Lay(skill, inputs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(r.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("case 40: the folder of the run is still there: %v", err)
		}
	})
	return r
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// B1: every file is laid out with its bytes, whatever the tree, and nothing else is.
func TestLayIsTheBundle(t *testing.T) {
	i := instance(t)
	rapid.Check(t, func(rt *rapid.T) {
		files := rapid.MapOfN(rapid.StringMatching(`[a-c-]{1,2}(/[a-c!]{1,2}){0,4}`), rapid.SliceOf(rapid.Byte()), 0, 12).Draw(rt, "files")
		var list []bundle.File
		for p, d := range files {
			list = append(list, bundle.File{Path: p, Data: d})
		}
		b, err := bundle.New(list, nil, bundle.Limits{})
		if err != nil {
			return // a file and a folder of one name
		}
		r, err := i.NewRun()
		must(t, err, r.Lay(b, bundle.Bundle{}))
		got := map[string]string{}
		must(t, filepath.WalkDir(r.Path(SkillDir), func(p string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(p)
			rel, _ := filepath.Rel(r.Path(SkillDir), p)
			got[rel] = string(text)
			info, _ := d.Info()
			if info.Mode() != 0o700 {
				rt.Errorf("%s has mode %v", rel, info.Mode())
			}
			return err
		}))
		want := map[string]string{}
		for _, f := range b.Files() {
			want[f.Path] = string(f.Data)
		}
		if !maps.Equal(got, want) {
			rt.Errorf("got %q, want %q", got, want)
		}
		must(t, r.Remove())
	})
	if left, _ := os.ReadDir(i.Dir()); len(left) > 0 {
		t.Errorf("case 40: left %v", left)
	}
}

// B5: inputs/ and outputs/ are reachable in the skill, unless the skill has such names.
func TestLinksInTheSkill(t *testing.T) {
	own, err := bundle.New([]bundle.File{{Path: "inputs/mine", Data: []byte("mine")}, {Path: "outputs", Data: []byte("a file")}}, nil, bundle.Limits{})
	must(t, err)
	inputs, err := bundle.New([]bundle.File{{Path: "a.txt", Data: []byte("a")}}, nil, bundle.Limits{})
	must(t, err)
	r := newRun(t, own, inputs)
	for path, want := range map[string]string{"skill/inputs/mine": "mine", "skill/outputs": "a file", "inputs/a.txt": "a"} {
		if got, err := os.ReadFile(r.Path(path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	r = newRun(t, bundle.Bundle{}, inputs)
	if got, err := os.ReadFile(r.Path("skill/inputs/a.txt")); err != nil || string(got) != "a" {
		t.Errorf("got %q, %v", got, err)
	}
	if names, notes := r.Collect(Harvest{Bytes: 10, Files: 10}); len(names)+len(notes) > 0 {
		t.Errorf("nothing was written, and got %v, %v", names, notes)
	}
}

// Case 38: what is collected, and what is named with its reason.
func TestCollect(t *testing.T) {
	for _, tc := range []struct {
		name  string
		write func(t *testing.T, r *Run, out string)
		files string   // paths that come back
		notes []string // in one note each
	}{
		{"files", func(t *testing.T, r *Run, out string) {
			must(t, os.MkdirAll(out+"/b/c", 0o755), os.WriteFile(out+"/b/c/d", []byte("d"), 0o644), os.WriteFile(out+"/a", nil, 0o600), os.Mkdir(out+"/empty", 0o755))
		}, "a b/c/d", nil},
		{"links", func(t *testing.T, r *Run, out string) {
			must(t, os.Symlink("/etc/passwd", out+"/file"), os.Symlink("/etc", out+"/folder"), os.Symlink("nowhere", out+"/dangling"))
		}, "", []string{"outputs/dangling was not collected: it is a link", "outputs/file was", "outputs/folder was"}},
		{"a hard link to a file outside", func(t *testing.T, r *Run, out string) {
			must(t, os.WriteFile(r.Path(TmpDir, "x"), []byte("x"), 0o600), os.Link(r.Path(TmpDir, "x"), out+"/x"))
		}, "", []string{"outputs/x was not collected: it has a second name"}},
		{"fifo and socket", func(t *testing.T, r *Run, out string) {
			must(t, unix.Mkfifo(out+"/fifo", 0o600))
		}, "", []string{"outputs/fifo was not collected: it is not a regular file"}},
		{"a sparse file", func(t *testing.T, r *Run, out string) {
			f, err := os.Create(out + "/sparse")
			must(t, err, f.Truncate(1<<40), f.Close())
		}, "", []string{"outputs/sparse was not collected: it has 1099511627776 bytes"}},
		{"the limits exactly", func(t *testing.T, r *Run, out string) {
			must(t, os.WriteFile(out+"/a", make([]byte, 60), 0o600), os.WriteFile(out+"/b", make([]byte, 40), 0o600), os.WriteFile(out+"/c", make([]byte, 1), 0o600), os.WriteFile(out+"/d", nil, 0o600))
		}, "a b d", []string{"outputs/c was not collected: it has 1 bytes, and 0 are left"}},
		{"too many", func(t *testing.T, r *Run, out string) {
			for i := range 6 {
				must(t, os.WriteFile(fmt.Sprintf("%s/%d", out, i), nil, 0o600))
			}
		}, "0 1 2 3", []string{"outputs/4 was not collected: there are too many", "outputs/5 was"}},
		{"names", func(t *testing.T, r *Run, out string) {
			must(t, os.WriteFile(out+"/a\nb", nil, 0o600), os.WriteFile(out+"/\xff", nil, 0o600), os.WriteFile(out+`/c\d`, nil, 0o600))
		}, "", []string{`outputs/a\nb was not collected: its name`, `outputs/c\\d was`, `outputs/\xff was`}},
		{"beside", func(t *testing.T, r *Run, out string) {
			must(t, os.WriteFile(out+"/../x", nil, 0o600), os.Mkdir(out+"/../y", 0o700))
		}, "", []string{"outputs/../x was not collected: it lies outside", "outputs/../y was"}},
		{"replaced", func(t *testing.T, r *Run, out string) {
			must(t, os.Rename(out, out+"2"), os.Symlink("/etc", out), os.WriteFile(out+"2/mine", []byte("x"), 0o600))
		}, "mine", []string{"outputs/../outputs2 was not collected"}},
		{"deep", func(t *testing.T, r *Run, out string) {
			must(t, os.MkdirAll(out+strings.Repeat("/d", bundle.DefaultDepth+3), 0o700), os.WriteFile(out+strings.Repeat("/d", bundle.DefaultDepth+1)+"/x", nil, 0o600))
		}, "", []string{"is too long or too deep"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
			tc.write(t, r, r.Path(OutputsDir))
			files, notes := r.Collect(Harvest{Bytes: 100, Files: 4})
			var got []string
			for _, f := range files {
				got = append(got, f.Path)
			}
			if strings.Join(got, " ") != tc.files {
				t.Errorf("got %q, want %q", got, tc.files)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("got notes %q, want %q", notes, tc.notes)
			}
			for i, n := range notes {
				if !strings.Contains(n, tc.notes[i]) {
					t.Errorf("got note %q, want %q in it", n, tc.notes[i])
				}
			}
		})
	}
}

// A script that writes very many entries costs a bounded look and bounded notes.
func TestCollectIsBounded(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	for i := range maxEntries + 5 {
		must(t, unix.Symlink("x", r.Path(OutputsDir, fmt.Sprint(i))))
	}
	files, notes := r.Collect(Harvest{Bytes: 100, Files: 4})
	if len(files) > 0 || len(notes) != maxNotes+1 || !strings.Contains(notes[0], "more than 10000 entries") {
		t.Errorf("got %d files and %d notes: %.200q", len(files), len(notes), notes)
	}
}

// Case 40: nothing that a script made keeps its folder, and nothing outside is touched.
func TestRemove(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/keep", []byte("x"), 0o600), os.Chmod(outside, 0o500))
	defer os.Chmod(outside, 0o700)
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	must(t, os.Symlink(outside, r.Path(SkillDir, "link")), os.Symlink(outside+"/keep", r.Path("file")), unix.Mkfifo(r.Path("fifo"), 0))
	for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600} {
		p := r.Path(HomeDir, fmt.Sprintf("%o", mode))
		must(t, os.MkdirAll(p+"/a/b", 0o700), os.WriteFile(p+"/a/f", nil, 0), os.Symlink(outside, p+"/a/link"), os.Chmod(p+"/a/b", mode), os.Chmod(p+"/a", mode), os.Chmod(p, mode))
	}
	// Deeper than descriptors would reach, and than a path may be long.
	f, err := os.Open(r.Path(TmpDir))
	must(t, err)
	for range 3 * maxDepth {
		sub, err := makeDir(f, strings.Repeat("d", 100))
		must(t, err, f.Close())
		f = sub
	}
	must(t, f.Chmod(0), f.Close())
	r2, err := r.instance.NewRun()
	must(t, err, r2.Remove())
	must(t, removeTree(r.instance.folder, r.name))
	info, err := os.Stat(outside)
	must(t, err)
	if text, err := os.ReadFile(outside + "/keep"); err != nil || string(text) != "x" || info.Mode().Perm() != 0o500 {
		t.Errorf("what lies outside was touched: %v, %q, %v", info.Mode(), text, err)
	}
}

// Case 40: instances of one runtime folder, opened and closed at once, never
// sweep one that lives.
func TestSweepSparesTheLiving(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.MkdirAll(filepath.Join(dir, "instance-"+strings.Repeat("A", 26), "skill"), 0o700),
		os.WriteFile(filepath.Join(dir, "instance-"+strings.Repeat("B", 26)+".lock"), nil, 0o600), os.Mkdir(filepath.Join(dir, "other"), 0o700))
	lives, _, err := OpenInstance(filepath.Join(t.TempDir(), "run"), nil)
	must(t, err)
	if left, err := Leftovers(filepath.Dir(lives.Dir())); err != nil || left != nil {
		t.Errorf("of an instance that lives, left behind are %v, error %v", left, err)
	}
	must(t, lives.Close())
	left, err := Leftovers(dir)
	slices.Sort(left)
	want := []string{filepath.Join(dir, "instance-"+strings.Repeat("A", 26)), filepath.Join(dir, "instance-"+strings.Repeat("B", 26))}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left behind are %v, error %v; want %v", left, err, want)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				i, warning, err := OpenInstance(dir, nil)
				if err != nil || warning != nil {
					t.Error(err, warning)
					return
				}
				r, err := i.NewRun()
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(r.Lay(bundle.Bundle{}, bundle.Bundle{}), r.Remove(), i.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"other"}) {
		t.Errorf("got %q, want what is not ours alone", names)
	}
}
