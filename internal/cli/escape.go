package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmless shows s so that nothing in it can act on a terminal or deceive who
// reads it: control, direction and invisible characters and what is not UTF-8
// show as escapes. Line feeds and tabs stay where lines is true.
func harmless(s string, lines bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r, lines) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r, lines):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += n
	}
	return b.String()
}

func hidden(r rune, lines bool) bool {
	if lines && (r == '\n' || r == '\t') {
		return false
	}
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}
