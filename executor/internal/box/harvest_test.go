//go:build unix

package box

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

func files(t testing.TB, text map[string]string) bundle.Bundle {
	t.Helper()
	var list []bundle.File
	for p, d := range text {
		list = append(list, bundle.File{Path: p, Data: []byte(d)})
	}
	b, err := bundle.New(list, nil, bundle.Limits{})
	must(t, err)
	return b
}

// edit writes below the folder, which is made if need be.
func edit(t testing.TB, folder string, text map[string]string) {
	t.Helper()
	for p, d := range text {
		full := filepath.Join(folder, p)
		must(t, os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(d), 0o600))
	}
}

func collected(files []bundle.File) map[string]string {
	got := map[string]string{}
	for _, f := range files {
		got[f.Path] = string(f.Data)
	}
	return got
}

// Patterns choose among the outputs; what they leave is named once, and not
// opened, and costs nothing of the limits.
func TestPatterns(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	want := map[string]string{"a.csv": "a", "deep/er/b.csv": "b"}
	edit(t, r.Path(OutputsDir), want)
	for i := range 12 {
		edit(t, r.Path(OutputsDir), map[string]string{fmt.Sprintf("log/%02d.txt", i): "0123456789"})
	}
	must(t, os.Symlink("/etc/passwd", r.Path(OutputsDir, "link")), os.Symlink("/etc/passwd", r.Path(OutputsDir, "link.csv")))
	got, notes := r.Collect(Harvest{Bytes: 2, Files: 2, Patterns: []string{"**/*.csv"}})
	if !maps.Equal(collected(got), want) {
		t.Errorf("got %q, want %q", collected(got), want)
	}
	if len(notes) != 2 || notes[0] != "outputs/link.csv was not collected: it is a link" ||
		notes[1] != "13 entries of outputs/ match no output pattern of the script and were not collected: link, log/00.txt, log/01.txt, log/02.txt, log/03.txt, log/04.txt, log/05.txt, log/06.txt and 5 more" {
		t.Errorf("got notes %q", notes)
	}
}

// Patterns and names that take long to compare cost a bounded time.
func TestPatternsAreBounded(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	for i := range 2000 {
		must(t, os.WriteFile(r.Path(OutputsDir, fmt.Sprintf("%s%04d", strings.Repeat("a", 240), i)), nil, 0o600))
	}
	patterns := slices.Repeat([]string{strings.Repeat("**/", 128) + "*" + strings.Repeat("a", 120) + "b"}, 64)
	got, told := r.Collect(Harvest{Bytes: 100, Files: 10, Patterns: patterns})
	if len(got) > 0 || len(told) != maxNotes+2 ||
		!strings.HasSuffix(told[0], "there is too much to compare with the output patterns") {
		t.Errorf("got %d files and %d notes: %.500q", len(got), len(told), told)
	}
}

// Case 39a: input files that are new or changed come back, unchanged ones do
// not, and the limits are those of the outputs.
func TestChangedInputs(t *testing.T) {
	given := map[string]string{"same": "same", "longer": "old", "edited": "old", "deep/er/edited": "old", "touched": "x", "empty": "", "gone": "x", "gone-too/x": "x", "fifo": "x", "big": strings.Repeat("x", 70_000)}
	for _, tc := range []struct {
		name  string
		edit  func(t *testing.T, r *Run, in string)
		files map[string]string
		notes []string // in one note each
	}{
		{"nothing", func(t *testing.T, r *Run, in string) {}, nil, nil},
		{"edited", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "new", "deep/er/edited": "wen", "longer": "old and new", "big": strings.Repeat("x", 69_999) + "y"})
		}, map[string]string{"inputs/edited": "new", "inputs/deep/er/edited": "wen", "inputs/longer": "old and new", "inputs/big": strings.Repeat("x", 69_999) + "y"}, nil},
		{"cut and filled", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "", "empty": "x"})
		}, map[string]string{"inputs/edited": "", "inputs/empty": "x"}, nil},
		{"written with the same bytes", func(t *testing.T, r *Run, in string) {
			must(t, os.Remove(in+"/touched"))
			edit(t, in, map[string]string{"touched": "x", "same": "same"})
			must(t, os.Chmod(in+"/edited", 0o400))
		}, nil, nil},
		{"time set back", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "new"})
			must(t, os.Chtimes(in+"/edited", time.Unix(1, 0), time.Unix(1, 0)))
		}, map[string]string{"inputs/edited": "new"}, nil},
		{"new", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"new/er": "n"})
		}, map[string]string{"inputs/new/er": "n"}, nil},
		{"deleted and renamed", func(t *testing.T, r *Run, in string) {
			must(t, os.RemoveAll(in+"/gone-too"), os.Rename(in+"/gone", in+"/here"))
		}, map[string]string{"inputs/here": "x"}, []string{"2 input files were deleted: inputs/gone, inputs/gone-too/x"}},
		{"links", func(t *testing.T, r *Run, in string) {
			must(t, os.Remove(in+"/edited"), os.Symlink("/etc/passwd", in+"/edited"), os.Rename(in+"/deep", r.Path(TmpDir, "d")), os.Symlink(r.Path(TmpDir, "d"), in+"/deep"),
				os.Link(in+"/longer", in+"/../outputs/hard"))
		}, nil, []string{"outputs/hard was not collected: it has a second name", "inputs/deep was not collected: it is a link", "inputs/edited was not collected: it is a link", "inputs/longer was not collected: it has a second name"}},
		{"a folder for a file", func(t *testing.T, r *Run, in string) {
			must(t, os.Remove(in+"/gone"))
			edit(t, in, map[string]string{"gone/x": "y"})
		}, map[string]string{"inputs/gone/x": "y"}, []string{"1 input file was deleted: inputs/gone"}},
		{"outputs of the same name", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "of inputs", "longer": "of inputs"})
			edit(t, r.Path(OutputsDir), map[string]string{"inputs/edited": "of outputs"})
		}, map[string]string{"inputs/edited": "of outputs", "inputs/longer": "of inputs"}, []string{"inputs/edited was not collected: outputs/ has a file of that name"}},
		{"outputs has a file inputs", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "of inputs"})
			edit(t, r.Path(OutputsDir), map[string]string{"inputs": "of outputs"})
		}, map[string]string{"inputs": "of outputs"}, []string{"inputs/edited was not collected: outputs/ has a file of that name"}},
		{"outputs has a folder of that name", func(t *testing.T, r *Run, in string) {
			edit(t, in, map[string]string{"edited": "of inputs"})
			edit(t, r.Path(OutputsDir), map[string]string{"inputs/edited/x": "of outputs"})
		}, map[string]string{"inputs/edited/x": "of outputs"}, []string{"inputs/edited was not collected: outputs/ has a file of that name"}},
		{"one limit for both", func(t *testing.T, r *Run, in string) {
			edit(t, r.Path(OutputsDir), map[string]string{"o1": "1", "o2": "2", "o3": strings.Repeat("x", 99_990)})
			edit(t, in, map[string]string{"edited": "0123456789", "longer": "12345678", "same": "12"})
		}, map[string]string{"o1": "1", "o2": "2", "o3": strings.Repeat("x", 99_990), "inputs/longer": "12345678"}, []string{"inputs/edited was not collected: it has 10 bytes, and 8 are left", "inputs/same was not collected: it has 2 bytes, and 0 are left"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRun(t, bundle.Bundle{}, files(t, given))
			tc.edit(t, r, r.Path(InputsDir))
			got, notes := r.Collect(Harvest{Bytes: 100_000, Files: 10, Patterns: []string{"**"}})
			if !maps.Equal(collected(got), tc.files) {
				t.Errorf("got %.200q, want %.200q", collected(got), tc.files)
			}
			if !slices.IsSortedFunc(got, func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) }) {
				t.Errorf("the files are not in the order of their paths: %.200q", got)
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

// Patterns are about outputs/ alone.
func TestPatternsLeaveInputs(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, files(t, map[string]string{"a": "old"}))
	edit(t, r.Path(InputsDir), map[string]string{"a": "new"})
	got, notes := r.Collect(Harvest{Bytes: 100, Files: 4, Patterns: []string{"*.csv"}})
	if len(got) != 1 || got[0].Path != "inputs/a" || len(notes) > 0 {
		t.Errorf("got %q and notes %q", got, notes)
	}
}

// Case 39: what the script wrote beside itself is told, and nothing else is.
func TestThrown(t *testing.T) {
	skill := map[string]string{"SKILL.md": "# s", "scripts/main.py": "pass", "lib/a.py": "x = 1"}
	for _, tc := range []struct {
		name string
		more map[string]string // of the skill
		edit func(t *testing.T, r *Run, dir string)
		want string
	}{
		{"nothing", nil, func(t *testing.T, r *Run, dir string) {}, ""},
		{"caches", nil, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"lib/__pycache__/a.cpython-311.pyc": "x", "lib/a.pyc": "x", "scripts/.DS_Store": "x"})
		}, ""},
		{"what is kept", nil, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"outputs/a": "x"})
		}, ""},
		{"another mode, a folder, a file that is gone", nil, func(t *testing.T, r *Run, dir string) {
			must(t, os.Chmod(dir+"/lib/a.py", 0o644), os.Mkdir(dir+"/empty", 0o700), os.Remove(dir+"/SKILL.md"))
		}, ""},
		{"new", nil, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"report.txt": "x"})
		}, "1 file written beside the script was thrown away: report.txt; write below outputs/ to keep them"},
		{"new and changed", nil, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"report\n.txt": "x", "a/b/c": "x", "lib/a.py": "x = 100"})
			must(t, os.Symlink("x", dir+"/link"))
		}, `4 files written beside the script were thrown away: a/b/c, lib/a.py, link, report\n.txt; write below outputs/ to keep them`},
		{"changed in its place", nil, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"lib/a.py": "x = 2"})
			later := time.Now().Add(time.Second) // the file system counts in ticks
			must(t, os.Chtimes(dir+"/lib/a.py", later, later))
		}, "1 file written beside the script was thrown away: lib/a.py; write below outputs/ to keep them"},
		{"many", nil, func(t *testing.T, r *Run, dir string) {
			for i := range 30 {
				edit(t, dir, map[string]string{fmt.Sprintf("%02d", i): "x"})
			}
		}, "30 files written beside the script were thrown away: 00, 01, 02, 03, 04, 05, 06, 07 and 22 more; write below outputs/ to keep them"},
		{"the skill has outputs/", map[string]string{"outputs/example": "x"}, func(t *testing.T, r *Run, dir string) {
			edit(t, dir, map[string]string{"outputs/a": "x"})
		}, "1 file written beside the script was thrown away: outputs/a; write below ../outputs/ to keep them"},
		{"the link was replaced", nil, func(t *testing.T, r *Run, dir string) {
			must(t, os.Remove(dir+"/outputs"))
			edit(t, dir, map[string]string{"outputs/a": "x"})
		}, "1 file written beside the script was thrown away: outputs/a; write below ../outputs/ to keep them"},
		{"deep", nil, func(t *testing.T, r *Run, dir string) {
			must(t, os.MkdirAll(dir+strings.Repeat("/d", 100), 0o700))
		}, "1 file written beside the script was thrown away: " + strings.Repeat("d/", bundle.DefaultDepth) + "d; write below outputs/ to keep them"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := maps.Clone(skill)
			maps.Copy(all, tc.more)
			r := newRun(t, files(t, all), files(t, map[string]string{"in": "x"}))
			tc.edit(t, r, r.Path(SkillDir))
			_, notes := r.Collect(Harvest{Bytes: 100, Files: 10})
			if got := strings.Join(notes, "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A skill's folder with very many new files costs a bounded look.
func TestThrownIsBounded(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	for i := range maxEntries + 50 {
		must(t, os.Symlink("x", r.Path(SkillDir, fmt.Sprint("f", i))))
	}
	_, notes := r.Collect(Harvest{})
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "at least ") || len(notes[0]) > 300 {
		t.Errorf("got %q", notes)
	}
}

// BenchmarkCollect reads what an untouched skill and its inputs cost after a run.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{1, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := map[string]string{}
			for i := range n {
				text[fmt.Sprintf("d%d/f%d", i/50, i)] = strings.Repeat("x", 5000)
			}
			r := newRun(b, files(b, text), files(b, text))
			for b.Loop() {
				for _, f := range []*os.File{r.folder, r.skill, r.inputs, r.outputs} {
					_, err := f.Seek(0, 0)
					must(b, err)
				}
				if got, notes := r.Collect(Harvest{Bytes: 1, Files: 1}); len(got)+len(notes) > 0 {
					b.Fatal(notes)
				}
			}
		})
	}
}
