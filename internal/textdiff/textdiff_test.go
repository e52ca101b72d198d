package textdiff

import (
	"strings"
	"testing"
)

// B11: a reviewer sees what has changed.
func TestUnified(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"equal", "a\n", "a\n", ""},
		{"one line", "a\nb\n", "a\nc\n", "-b\n+c\n"},
		{"a line feed at the end", "a\n", "a\n\n", "+\n"},
		{"no line feed at the end", "a\n", "a", `\ No newline at end of file`},
		{"not text", "a", "\x00", "f: not text: 1 bytes became 1 bytes\n"},
		{"not UTF-8", "\xff", "a", "f: not text"},
		{"too large", strings.Repeat("a", MaxText), "b", "f: too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Unified("f", tt.old, tt.new)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want it to hold %q", got, tt.want)
			}
		})
	}
}
