package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestWithoutRoom(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"one", "grant: not found: x", "not found: x"},
		{"several", "tracon: store: grant: conflict", "conflict"},
		{"none", "SKILL.md: grant: is missing", "SKILL.md: grant: is missing"},
		{"the word alone", "grant", "grant"},
		{"empty", "", ""},
	} {
		if got := withoutRoom(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Every package whose errors begin with its name is one that withoutRoom knows, so that no
// user reads the name of a package.
func TestEveryRoomIsKnown(t *testing.T) {
	begin := regexp.MustCompile(`(?:errors\.New|fmt\.Errorf)\("([a-z]+): `)
	top := filepath.Join("..", "..")
	n := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "cmd" || name == "tools" || name == "examples" || name == "bench" || strings.HasPrefix(name, ".") && path != top || strings.HasSuffix(name, "test")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		room := filepath.Base(filepath.Dir(path))
		for _, m := range begin.FindAllSubmatch(text, -1) {
			if word := string(m[1]); word == room {
				if n++; withoutRoom(word+": x") != "x" {
					t.Errorf("%s: an error begins with %q: add it to rooms", path, word)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 50 {
		t.Errorf("only %d errors begin with a room's name", n)
	}
}
