// Package textdiff shows the difference between two texts to a reviewer. It is
// the only importer of the library that computes it.
package textdiff

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// MaxText is the size in bytes above which a text is told of by its size alone:
// the comparison takes time with the square of what differs.
const MaxText = 1 << 20

// Unified returns the difference from old to new in the unified form, with
// three lines around each change. What is no text, or too large, is told of in
// one line. It returns "" for equal texts. Nothing in it is made harmless for a
// terminal: whoever prints it does that.
func Unified(name, old, new string) string {
	switch {
	case old == new:
		return ""
	case !text(old) || !text(new):
		return fmt.Sprintf("%s: not text: %d bytes became %d bytes\n", name, len(old), len(new))
	case len(old)+len(new) > MaxText:
		return fmt.Sprintf("%s: too large to compare line by line: %d bytes became %d bytes\n", name, len(old), len(new))
	}
	return udiff.Unified("old/"+name, "new/"+name, old, new)
}

func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
