package skill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// shelf is an Imports in a map. A skill whose bundle is zero cannot be read.
type shelf map[string]shelved // by tenant and skill

type shelved struct {
	b      bundle.Bundle
	origin gate.Origin
}

var errShelf = errors.New("the shelf fell over")

func (s shelf) get(tenant, skill string) (shelved, error) {
	k, ok := s[tenant+"\n"+skill]
	switch {
	case !ok:
		return k, fmt.Errorf("%w: %s", grant.ErrNotFound, skill)
	case k.b.IsZero():
		return k, errShelf
	}
	return k, nil
}

func (s shelf) ImportedScript(_ context.Context, tenant, skill, path string) (gate.Origin, error) {
	k, err := s.get(tenant, skill)
	if _, _, ok := k.b.Text(path); !ok {
		k.origin = 0
	}
	return k.origin, err
}

func (s shelf) ImportedSkill(_ context.Context, tenant, skill string) (bundle.Bundle, error) {
	k, err := s.get(tenant, skill)
	return k.b, err
}

func (s shelf) folder(t *testing.T, tenant, skill string, pathsAndData ...string) {
	t.Helper()
	var files []bundle.File
	for i := 0; i < len(pathsAndData); i += 2 {
		files = append(files, bundle.File{Path: pathsAndData[i], Data: []byte(pathsAndData[i+1])})
	}
	b, err := bundle.New(files, nil, bundle.Limits{})
	must(t, err)
	s[tenant+"\n"+skill] = shelved{b, gate.FileScript}
}

// R9, R14, case 1: an imported skill is its tenant's alone, and its scripts are
// known by exact bytes.
func TestImportedFind(t *testing.T) {
	s := shelf{}
	s.folder(t, "t", "s", "SKILL.md", md("s"), "scripts/a.py", "of t")
	s.folder(t, "u", "s", "SKILL.md", md("s"), "scripts/b.py", "of u")
	s.folder(t, "u", "only", "SKILL.md", md("only"), "a.py", "")
	b, err := Stored("single.py", []byte("1"), gate.Declaration{})
	must(t, err)
	s["t\nsingle"] = shelved{b, gate.StoredScript}
	s["t\nbroken"] = shelved{}
	i := NewImported(s)
	for _, tt := range []struct {
		name, tenant, skill, script string
		want                        gate.Origin
		is                          error
	}{
		{"a file script", "t", "s", "scripts/a.py", gate.FileScript, nil},
		{"any file", "t", "s", "SKILL.md", gate.FileScript, nil},
		{"the other tenant's", "u", "s", "scripts/b.py", gate.FileScript, nil},
		{"a stored script", "t", "single", "single.py", gate.StoredScript, nil},
		{"a script that only the other has", "t", "s", "scripts/b.py", 0, gate.ErrUnknown},
		{"the same the other way", "u", "s", "scripts/a.py", 0, gate.ErrUnknown},
		{"a skill that only the other has", "t", "only", "a.py", 0, gate.ErrUnknown},
		{"a stored script that only the other has", "u", "single", "single.py", 0, gate.ErrUnknown},
		{"no tenant", "", "s", "scripts/a.py", 0, gate.ErrUnknown},
		{"another case", "t", "s", "scripts/A.py", 0, gate.ErrUnknown},
		{"a folder", "t", "s", "scripts", 0, gate.ErrUnknown},
		{"a way out", "t", "s", "scripts/../scripts/a.py", 0, gate.ErrUnknown},
		{"a backslash", "t", "s", `scripts\a.py`, 0, gate.ErrUnknown},
		{"nothing", "t", "s", "", 0, gate.ErrUnknown},
		{"another file of a stored script", "t", "single", "SKILL.md", 0, gate.ErrUnknown},
		{"no such skill", "t", "../../etc", "passwd", 0, gate.ErrUnknown},
		{"one that cannot be read", "t", "broken", "a.py", 0, errShelf},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := i.Find(t.Context(), tt.tenant, tt.skill, tt.script)
			if got != tt.want || !errors.Is(err, tt.is) || tt.is == errShelf && errors.Is(err, gate.ErrUnknown) {
				t.Errorf("got %v, %v; want %v, %v", got, err, tt.want, tt.is)
			}
		})
	}
}

// R9, R15, B1: what is read is the tenant's own, whole, and within the limits of now.
func TestImportedRead(t *testing.T) {
	s := shelf{}
	s.folder(t, "t", "s", "SKILL.md", md("s"), "a.py", "of t")
	s.folder(t, "u", "s", "SKILL.md", md("s"), "a.py", "of u")
	s["t\nbroken"] = shelved{}
	i := NewImported(s)
	for _, tenant := range []string{"t", "u"} {
		b, err := i.Read(t.Context(), tenant, "s", bundle.Limits{})
		if text, _, _ := b.Text("a.py"); err != nil || text != "of "+tenant {
			t.Errorf("%s reads %q, %v", tenant, text, err)
		}
	}
	for _, tt := range []struct {
		name, tenant, skill string
		limits              bundle.Limits
		is                  error
	}{
		{"over the limits of now", "t", "s", bundle.Limits{Files: 1}, bundle.ErrLimit},
		{"a tenant without it", "v", "s", bundle.Limits{}, gate.ErrUnknown},
		{"no such skill", "t", "other", bundle.Limits{}, gate.ErrUnknown},
		{"one that cannot be read", "t", "broken", bundle.Limits{}, errShelf},
	} {
		b, err := i.Read(t.Context(), tt.tenant, tt.skill, tt.limits)
		if !errors.Is(err, tt.is) || !b.IsZero() || tt.is == errShelf && (errors.Is(err, gate.ErrUnknown) || errors.Is(err, bundle.ErrContent)) {
			t.Errorf("%s: got %d files and %v, want %v", tt.name, len(b.Paths()), err, tt.is)
		}
	}
}

// Two skills of one name never mix: who knows the skill decides alone, also on
// the scripts that it has not, and on what cannot be read.
func TestContentsInTurn(t *testing.T) {
	root := write(t, "root", map[string]string{
		"s/SKILL.md": md("s"), "s/folder.py": "in the folder", "s/both.py": "in the folder",
		"f/SKILL.md": md("f"), "f/folder.py": "in the folder", "broken/SKILL.md": md("broken"), "broken/folder.py": "",
	})
	l := library(t, root)
	s := shelf{}
	s.folder(t, "t", "s", "SKILL.md", md("s"), "imported.py", "imported", "both.py", "imported")
	s["t\nbroken"] = shelved{}
	i := NewImported(s)
	for _, tt := range []struct {
		name          string
		c             gate.Contents
		tenant, skill string
		script        string
		is            error
		text          string
	}{
		{"what both have, imported first", Contents(i, l), "t", "s", "both.py", nil, "imported"},
		{"what both have, folders first", Contents(l, i), "t", "s", "both.py", nil, "in the folder"},
		{"what the imported one has alone", Contents(i, l), "t", "s", "imported.py", nil, "imported"},
		{"what the folder has alone, imported first", Contents(i, l), "t", "s", "folder.py", gate.ErrUnknown, ""},
		{"what the imported one has alone, folders first", Contents(l, i), "t", "s", "imported.py", gate.ErrUnknown, ""},
		{"a skill that only the folders have", Contents(i, l), "t", "f", "folder.py", nil, "in the folder"},
		{"a tenant that imported nothing", Contents(i, l), "u", "s", "folder.py", nil, "in the folder"},
		{"a tenant that imported nothing, and the other's script", Contents(i, l), "u", "s", "imported.py", gate.ErrUnknown, ""},
		{"a skill that nobody has", Contents(i, l), "t", "none", "folder.py", gate.ErrUnknown, ""},
		{"one that cannot be read does not give way", Contents(i, l), "t", "broken", "folder.py", errShelf, ""},
		{"three in turn", Contents(NewImported(shelf{}), Contents(i, l)), "t", "s", "both.py", nil, "imported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			origin, err := tt.c.Find(t.Context(), tt.tenant, tt.skill, tt.script)
			if !errors.Is(err, tt.is) || (origin == gate.FileScript) != (tt.is == nil) || tt.is == errShelf && errors.Is(err, gate.ErrUnknown) {
				t.Fatalf("Find gives %v, %v; want %v", origin, err, tt.is)
			}
			b, err := tt.c.Read(t.Context(), tt.tenant, tt.skill, bundle.Limits{})
			text, _, _ := b.Text(tt.script)
			if text != tt.text || tt.is == nil && err != nil || tt.is == errShelf && !errors.Is(err, errShelf) {
				t.Fatalf("Read gives %q, %v; want %q", text, err, tt.text)
			}
			both := strings.Join(b.Paths(), " ")
			if strings.Contains(both, "imported.py") && strings.Contains(both, "folder.py") {
				t.Errorf("the files of two skills are in one: %s", both)
			}
		})
	}
}
