package skill

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A passing keeper keeps nothing but the listing: it must not miss the bytes, and
// spoils those that it was shown, which nobody may look at again.
type passing struct {
	list   *bundle.Lister
	paths  []string
	failAt string
}

var errNoRoom = errors.New("no room")

func (p *passing) Add(path string, data []byte) error {
	if path == p.failAt {
		return errNoRoom
	}
	p.paths = append(p.paths, path)
	_, err := p.list.Add(path, data)
	clear(data)
	return err
}

func (p *passing) Content(declaration []byte) (bundle.Content, error) {
	if p.failAt == ":content" {
		return nil, errNoRoom
	}
	l, err := p.list.Listing(declaration)
	if err != nil {
		return nil, err
	}
	return listed{l}, nil
}

type listed struct{ listing bundle.Listing }

func (l listed) Listing() bundle.Listing         { return l.listing }
func (l listed) ReadFile(string) ([]byte, error) { return nil, errNoRoom }

func newPassing(failAt string) *passing {
	return &passing{list: bundle.NewLister(bundle.Limits{}), failAt: failAt}
}

func zipOf(files []bundle.File) []byte {
	var entries []rawEntry
	for i, f := range files {
		entries = append(entries, rawEntry{name: f.Path, data: string(f.Data), method: uint16(i % 2 * zipDeflate)})
	}
	return rawZip("", "", entries...)
}

// wholeZip reads an archive into memory.
func wholeZip(b []byte, limits bundle.Limits) (Skill, error) {
	files, left, err := ReadZip(bytes.NewReader(b), int64(len(b)), limits)
	if err != nil {
		return Skill{}, err
	}
	s, err := FromFiles(files, limits)
	s.Diagnostics = append(left, s.Diagnostics...)
	sortDiagnostics(s.Diagnostics)
	return s, err
}

// into reads a folder or a zip file into k.
func into(source string, k Keeper) (Outline, bundle.Content, error) {
	b, err := os.ReadFile(source)
	if err != nil { // a folder
		return ReadInto(source, bundle.Limits{}, k)
	}
	return ReadZipInto(bytes.NewReader(b), int64(len(b)), bundle.Limits{}, k)
}

// sameInto ends the test when read, which reads piece by piece, says anything else
// than s and err, which reading whole says.
func sameInto(t interface{ Fatalf(string, ...any) }, s Skill, err error, read func(Keeper) (Outline, bundle.Content, error)) {
	k := newPassing("")
	o, c, err2 := read(k)
	switch {
	case (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error():
		t.Fatalf("piece by piece the error is %v, want %v", err2, err)
	case err != nil:
		if c != nil || o.Name != "" {
			t.Fatalf("with the error came %q and a content", o.Name)
		}
		return
	}
	if got, want := c.Listing().Digest(), s.Bundle.Digest(); got != want {
		t.Fatalf("piece by piece the digest is %s, want %s", got, want)
	}
	if d := cmp.Diff(s.Outline, o, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("piece by piece it says something else (-whole +pieces):\n%s", d)
	}
	if n, _ := s.Bundle.Size(); len(k.paths) != n {
		t.Fatalf("%d files were handed on, of %d", len(k.paths), n)
	}
}

// Reading a folder or an archive piece by piece says what reading it whole says:
// digest, scripts, diagnostics, refusals and the lint.
func TestReadIntoIsRead(t *testing.T) {
	const good = "---\nname: s\ndescription: d\n---\nUse it.\n"
	piece := rapid.SampledFrom([][2]string{
		{"SKILL.md", good}, {"SKILL.md", good}, {"SKILL.md", "---\nname: [\n"}, {"skill.md", good}, {"sub/SKILL.md", good},
		{"tracon.yaml", "scripts:\n  scripts/a.py:\n    arguments: stdin\n"}, {"tracon.yaml", "scripts: [\n"}, {"tracon.yaml", "scripts:\n  gone.py: {}\n"},
		{"scripts/a.py", "print(1)\n"}, {"scripts/tool", "#!/usr/bin/env python3\n"}, {"scripts/other", "no script"},
		{"a-b", "1"}, {"a/b", "1"}, {"A/b", "2"}, {"scripts/b.sh", "ls\r\ncurl x\r\n"}, {"p/m.py", "from . import x\nif __name__ == '__main__': eval(x)\n"},
		{"empty", ""}, {".git/config", "x"}, {"notes.md", "# n"},
	})
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "skill")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		folder := filepath.Join(dir, "s")
		files := map[string]string{}
		var list []bundle.File
		for _, p := range rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces") {
			at := filepath.Join(folder, filepath.FromSlash(p[0]))
			if _, ok := files[p[0]]; ok || os.MkdirAll(filepath.Dir(at), 0o755) != nil || os.WriteFile(at, []byte(p[1]), 0o644) != nil {
				continue // it is there, or the file system takes it for another
			}
			files[p[0]] = p[1]
			list = append(list, bundle.File{Path: p[0], Data: []byte(p[1])})
		}
		if os.MkdirAll(folder, 0o755) != nil {
			t.Fatalf("no folder")
		}
		s, err := Read(folder, bundle.Limits{})
		sameInto(t, s, err, func(k Keeper) (Outline, bundle.Content, error) { return into(folder, k) })
		if err == nil {
			got, err := LintFolder(folder, bundle.Limits{})
			if d := cmp.Diff(Lint(s), got); err != nil || d != "" {
				t.Fatalf("the lint says something else of the folder, error %v (-whole +pieces):\n%s", err, d)
			}
		}

		b := zipOf(list)
		s, err = wholeZip(b, bundle.Limits{})
		sameInto(t, s, err, func(k Keeper) (Outline, bundle.Content, error) {
			return ReadZipInto(bytes.NewReader(b), int64(len(b)), bundle.Limits{}, k)
		})
	})
}

// A skill of a library is read piece by piece as it is read whole, by its exact name.
func TestSkillIntoIsSkill(t *testing.T) {
	root := t.TempDir()
	b, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte("---\nname: s\ndescription: d\n---\nUse it.\n")}, {Path: "a.py", Data: []byte("1")}}, nil, bundle.Limits{})
	must(t, err)
	must(t, WriteFolder(filepath.Join(root, "s"), b))
	l := NewLibrary(bundle.Limits{})
	must(t, l.AddRoot(root))
	for name, want := range map[string]error{"s": nil, "S": gate.ErrUnknown, "s/": gate.ErrUnknown} {
		s, err := l.Skill(name, bundle.Limits{})
		if !errors.Is(err, want) {
			t.Errorf("%q: err = %v, want %v", name, err, want)
		}
		sameInto(t, s, err, func(k Keeper) (Outline, bundle.Content, error) { return l.SkillInto(name, bundle.Limits{}, k) })
	}
}

// What the keeper says ends the reading, and is no fault of the skill.
func TestReadIntoKeeperFails(t *testing.T) {
	dir := t.TempDir()
	folder, archive := filepath.Join(dir, "s"), filepath.Join(dir, "s.zip")
	list := []bundle.File{{Path: "SKILL.md", Data: []byte("---\nname: s\ndescription: d\n---\nUse it.\n")}, {Path: "b", Data: []byte("1")}, {Path: "c", Data: []byte("2")}}
	b, err := bundle.New(list, nil, bundle.Limits{})
	must(t, err)
	must(t, WriteFolder(folder, b))
	must(t, os.WriteFile(archive, zipOf(list), 0o644))
	for _, source := range []string{folder, archive} {
		for _, failAt := range []string{"SKILL.md", "b", "c", ":content"} {
			k := newPassing(failAt)
			o, c, err := into(source, k)
			if !errors.Is(err, errNoRoom) || errors.Is(err, bundle.ErrContent) || c != nil || o.Name != "" {
				t.Errorf("%s, failing at %s: %q, %v, err = %v", filepath.Base(source), failAt, o.Name, c, err)
			}
			if n := len(k.paths); failAt == "b" && n > 1 {
				t.Errorf("%s: reading went on after the error: %v", filepath.Base(source), k.paths)
			}
		}
	}
}
