package skill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

func md(name string) string { return "---\nname: " + name + "\ndescription: Is " + name + ".\n---\n" }

func names(l *Library) []string {
	var all []string
	for _, s := range l.List() {
		all = append(all, s.Name)
	}
	return all
}

func library(t testing.TB, roots ...string) *Library {
	t.Helper()
	l := NewLibrary(bundle.Limits{})
	for _, r := range roots {
		must(t, l.AddRoot(r))
	}
	return l
}

// Cases 4 to 6: what is no skill, or a bad one, is named and hides no other.
func TestScan(t *testing.T) {
	outside := write(t, "outside", map[string]string{"SKILL.md": md("outside"), "file.md": md("linked-md")})
	root := write(t, "root", map[string]string{
		"a/SKILL.md": md("a"), "a/examples/b/SKILL.md": md("b"), // case 5: the outermost
		"group/c/SKILL.md": md("c"), "group/c/run.py": "x", "group/c/lib/__init__.py": "", "group/c/data.json": "",
		"broken/SKILL.md": "---\nname: broken\n", "group/lower/skill.md": md("lower"), "README.md": "x",
		".git/d/SKILL.md": md("d"), "linkedmd/x.py": "", "z/SKILL.md": md("z"), "md-folder/SKILL.md/x": "",
		"over/SKILL.md": md("over"), "over/" + strings.Repeat("d/", 17) + "x": "",
	})
	must(t, os.Symlink(outside, filepath.Join(root, "linked"))) // case 4
	must(t, os.Symlink(filepath.Join(outside, "nowhere"), filepath.Join(root, "group/dangling")))
	must(t, os.Symlink(filepath.Join(outside, "file.md"), filepath.Join(root, "linkedmd/SKILL.md")))
	must(t, os.Mkdir(filepath.Join(root, "m"), 0)) // case 6
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "m"), 0o755) })
	unprivileged(t, root, func() {
		l := NewLibrary(bundle.Limits{})
		if err := l.AddRoot(root); err != nil {
			t.Error(err)
			return
		}
		if got, want := names(l), []string{"a", "c", "over", "z"}; !slices.Equal(got, want) {
			t.Errorf("got skills %q, want %q", got, want)
		}
		for _, want := range []struct {
			sev        Severity
			path, text string
		}{
			{Warning, "linked", "is a link, which is not followed"},
			{Warning, "group/dangling", "is a link"},
			{Warning, "linkedmd/SKILL.md", "is a link"},
			{Warning, "group/lower/skill.md", "must be called SKILL.md"},
			{Warning, "md-folder/SKILL.md", "it is no file"},
			{Warning, "m", "cannot be"},
			{Error, "broken/SKILL.md", "frontmatter is not closed"},
		} {
			if d := find(l.Problems(), want.sev, filepath.Join(root, want.path), want.text); d == nil || d.Remedy == "" {
				t.Errorf("nothing is said of %s: %v", want.path, l.Problems())
			}
		}
		if len(l.Problems()) != 7 {
			t.Errorf("got %d problems: %v", len(l.Problems()), l.Problems())
		}
		for _, s := range l.List() {
			if s.Name == "c" && (!slices.Equal(s.Scripts, []string{"run.py"}) || s.Description != "Is c." || s.Folder != filepath.Join(root, "group/c")) {
				t.Errorf("got %+v", s)
			}
			if s.Name == "over" && len(errorsOf(s.Diagnostics)) != 1 {
				t.Errorf("nothing is said of the deep folder: %v", s.Diagnostics)
			}
		}
		if _, err := l.Read(t.Context(), "t", "over", bundle.Limits{}); !errors.Is(err, bundle.ErrLimit) {
			t.Errorf("a skill over a limit: got error %v", err)
		}
	})
	if err := NewLibrary(bundle.Limits{}).AddRoot(filepath.Join(root, "nowhere")); err == nil {
		t.Error("a root that is not there is taken")
	}
}

// Case 7: of two skills with one name the first root's is taken, and both are named.
func TestTwoRoots(t *testing.T) {
	one := write(t, "one", map[string]string{"x/SKILL.md": md("same"), "x/a.py": "1"})
	two := write(t, "two", map[string]string{"y/SKILL.md": md("same"), "y/a.py": "2", "z/SKILL.md": md("z")})
	l := library(t, one, two)
	if got := names(l); !slices.Equal(got, []string{"same", "z"}) {
		t.Errorf("got %q", got)
	}
	if f, ok := l.Folder("same"); !ok || f != filepath.Join(one, "x") {
		t.Errorf("got folder %q", f)
	}
	if d := find(l.Problems(), Warning, filepath.Join(two, "y"), filepath.Join(one, "x")); d == nil {
		t.Errorf("got %v", l.Problems())
	}
	if err := l.AddFolder(filepath.Join(two, "y")); err == nil || !strings.Contains(err.Error(), filepath.Join(one, "x")) {
		t.Errorf("got error %v", err)
	}
	must(t, l.AddFolder(filepath.Join(one, "x"))) // the same one again
	l2 := library(t, two, one)
	if f, _ := l2.Folder("same"); f != filepath.Join(two, "y") {
		t.Errorf("the first root does not win: %q", f)
	}
}

// Cases 1, 2, 3 and 8, R14: a script is found by the exact bytes of its path
// among what the folder lists, and by nothing else.
func TestFind(t *testing.T) {
	root := write(t, "root", map[string]string{
		"good/SKILL.md": md("good"), "good/scripts/run.py": "x", "good/x.py": "x", "good/café.py": "x",
		"good/.git/hook.py": "x", "good/__pycache__/x.py": "x", "etc/passwd": "x", "x.py": "x",
	})
	must(t, os.Symlink("/bin/ls", filepath.Join(root, "good/scripts/ls.sh")))
	must(t, os.Symlink("scripts", filepath.Join(root, "good/linked")))
	l := library(t, root)
	ctx := t.Context()
	for _, script := range []string{"scripts/run.py", "x.py", "SKILL.md", "café.py"} {
		if o, err := l.Find(ctx, "any", "good", script); o != gate.FileScript || err != nil {
			t.Errorf("%q: got %v, error %v", script, o, err)
		}
	}
	for _, script := range []string{
		"", ".", "/", "scripts", "scripts/", "/tmp/evil.py", filepath.Join(root, "good/x.py"), `..\..\evil.py`, "scripts/../../x.py", "scripts/../x.py",
		"../x.py", "./x.py", "scripts//run.py", "x.py\x00.txt", "C:x.py", "x.py.", "x.py ", " x.py", "X.py", "X.PY", "scripts/RUN.py", "Scripts/run.py",
		"cafe\u0301.py", "x\u200b.py", "ｘ.py", "scripts/ls.sh", "linked/run.py", ".git/hook.py", "__pycache__/x.py", "x.py/y", "scripts/none.py", "\xff",
	} {
		if o, err := l.Find(ctx, "any", "good", script); o != 0 || !errors.Is(err, gate.ErrUnknown) {
			t.Errorf("%q: got %v, error %v", script, o, err)
		}
	}
	for _, name := range []string{"", "Good", "../../etc", "../etc", ".", "etc", "good/", root, "good\x00"} {
		if _, err := l.Find(ctx, "any", name, "x.py"); !errors.Is(err, gate.ErrUnknown) {
			t.Errorf("skill %q: got error %v", name, err)
		}
		if _, err := l.Read(ctx, "any", name, bundle.Limits{}); !errors.Is(err, gate.ErrUnknown) {
			t.Errorf("skill %q is read: error %v", name, err)
		}
	}
	stopped, cancel := context.WithCancelCause(ctx)
	why := errors.New("the caller left")
	cancel(why)
	_, err := l.Find(stopped, "any", "good", "x.py")
	_, err2 := l.Read(stopped, "any", "good", bundle.Limits{})
	if !errors.Is(err, why) || !errors.Is(err2, why) {
		t.Errorf("got errors %v, %v; want the cause", err, err2)
	}
}

// Each call sees the folder as it is, and a skill that is gone, exchanged or
// renamed is not run under its old name.
func TestLibraryReadsAnew(t *testing.T) {
	root := write(t, "root", map[string]string{"good/SKILL.md": md("good"), "good/x.py": "1", "other/SKILL.md": md("other")})
	l := library(t, root)
	ctx := t.Context()
	b1, err := l.Read(ctx, "", "good", bundle.Limits{})
	must(t, err)
	writeIn(t, root, map[string]string{"good/x.py": "2", "good/new.py": ""})
	b2, err := l.Read(ctx, "", "good", bundle.Limits{})
	must(t, err)
	if text, _, _ := b2.Text("x.py"); text != "2" || b1.Digest() == b2.Digest() {
		t.Errorf("got %q", text)
	}
	if _, err := l.Find(ctx, "", "good", "new.py"); err != nil {
		t.Error(err)
	}
	writeIn(t, root, map[string]string{"good/SKILL.md": md("evil")})
	if _, err := l.Read(ctx, "", "good", bundle.Limits{}); !errors.Is(err, bundle.ErrContent) || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("renamed: got error %v", err)
	}
	if err := l.Rescan(); err != nil || !slices.Equal(names(l), []string{"evil", "other"}) {
		t.Errorf("got %q, error %v", names(l), err)
	}
	must(t, os.Rename(filepath.Join(root, "good"), filepath.Join(root, "moved")))
	must(t, os.Symlink("moved", filepath.Join(root, "good")))
	for _, what := range []string{"exchanged for a link", "gone"} {
		_, err := l.Find(ctx, "", "evil", "x.py")
		_, err2 := l.Read(ctx, "", "evil", bundle.Limits{})
		if !errors.Is(err, gate.ErrUnknown) || !errors.Is(err2, gate.ErrUnknown) {
			t.Errorf("%s: got errors %v, %v", what, err, err2)
		}
		must(t, os.RemoveAll(filepath.Join(root, "good")))
	}
	must(t, os.RemoveAll(root))
	if err := l.Rescan(); err == nil || len(l.List()) != 2 {
		t.Errorf("a root that is gone: error %v, %d skills", err, len(l.List()))
	}
}

func TestAddFolder(t *testing.T) {
	folder := write(t, "good", map[string]string{"SKILL.md": md("good"), "x.py": "1"})
	l := NewLibrary(bundle.Limits{})
	must(t, l.AddFolder(folder))
	if _, err := l.Find(t.Context(), "", "good", "x.py"); err != nil {
		t.Error(err)
	}
	s, err := l.Skill("good", bundle.Limits{})
	if err != nil || s.Folder != folder || len(s.Scripts) != 1 {
		t.Errorf("got %+v, error %v", s, err)
	}
	for name, files := range map[string]map[string]string{"empty": {"x.py": ""}, "bad": {"SKILL.md": "x"}} {
		if err := NewLibrary(bundle.Limits{}).AddFolder(write(t, name, files)); !errors.Is(err, bundle.ErrContent) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if err := l.AddFolder(filepath.Join(folder, "nowhere")); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

// What a gate says of a skill stands in the log that its tenant reads, so it says
// nothing of where the skill lies on the host.
func TestLibraryErrorsNameNoFolder(t *testing.T) {
	for name, spoil := range map[string]func(folder string) error{
		"gone":            os.RemoveAll,
		"a file":          func(f string) error { return errors.Join(os.RemoveAll(f), os.WriteFile(f, nil, 0o644)) },
		"broken markdown": func(f string) error { return os.WriteFile(filepath.Join(f, "SKILL.md"), []byte("x"), 0o644) },
		"no markdown":     func(f string) error { return os.Remove(filepath.Join(f, "SKILL.md")) },
		"another name":    func(f string) error { return os.WriteFile(filepath.Join(f, "SKILL.md"), []byte(md("other")), 0o644) },
		"too large":       func(f string) error { return os.WriteFile(filepath.Join(f, "big"), make([]byte, 2<<20), 0o644) },
		"too many entries": func(f string) error {
			return errors.Join(os.MkdirAll(filepath.Join(f, strings.Repeat("a/", 40)), 0o755))
		},
		"unreadable": func(f string) error { return os.Chmod(filepath.Join(f, "x.py"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, "good", map[string]string{"SKILL.md": md("good"), "x.py": "1"})
			l := NewLibrary(bundle.Limits{})
			must(t, errors.Join(l.AddFolder(folder), spoil(folder)))
			failed := 0
			unprivileged(t, folder, func() {
				_, find := l.Find(t.Context(), "", "good", "x.py")
				_, read := l.Read(t.Context(), "", "good", bundle.Limits{FileBytes: 1 << 20})
				for _, err := range []error{find, read} {
					if err == nil {
						continue
					}
					failed++
					if strings.Contains(err.Error(), filepath.Dir(folder)) || !strings.Contains(err.Error(), "good") {
						t.Errorf("got error %v", err)
					}
				}
			})
			if failed == 0 {
				t.Error("nothing failed")
			}
		})
	}
}
