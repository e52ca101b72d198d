package gate_test

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
)

// B5: a declaration says which files come back.
func TestMatchOutput(t *testing.T) {
	tests := []struct {
		patterns, file string
		want           bool
	}{
		{"", "a/b", true},
		{"*.csv", "a.csv", true},
		{"*.csv", "a/b.csv", false},
		{"**/*.csv", "a.csv", true},
		{"**/*.csv", "a/b/c.csv", true},
		{"a/**", "a/b/c", true},
		{"a/**", "b/a", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c/y", false},
		{"x y/[ab].txt", "x y/a.txt", true},
		{"one two/*", "one two/f", true},
	}
	for _, tt := range tests {
		var patterns []string
		if tt.patterns != "" {
			patterns = []string{"no such file", tt.patterns}
		}
		if got := gate.MatchOutput(patterns, tt.file); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.patterns, tt.file, got, tt.want)
		}
	}
	for _, p := range []string{"", "/a", "a//b", "../a", "a/./b", "[", "a/", strings.Repeat("a", 513)} {
		if gate.ValidPattern(p) {
			t.Errorf("%q is taken for a pattern", p)
		}
	}
}

// A pattern is the skill's own: no one makes matching slow.
func FuzzMatchOutput(f *testing.F) {
	f.Add("**/**/**/a*b*c*", "a/b/c/d/e/f")
	f.Fuzz(func(t *testing.T, pattern, file string) {
		if gate.ValidPattern(pattern) {
			gate.MatchOutput([]string{pattern}, file)
		}
	})
}

func TestModuleOf(t *testing.T) {
	for script, want := range map[string]string{"a.py": "a", "a/b.py": "a.b", "a/b/__main__.py": "a.b", "a-b/c.py": "", "a/1.py": "",
		"a.sh": "", "__main__.py": "__main__", "a/b.c.py": ""} {
		if got := gate.ModuleOf(script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
