package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible writes what steers a terminal, or cannot be seen, as an escape.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch _, n := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case hidden(r) && r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// short is s in quotes, cut after about 60 bytes.
func short(s string) string { return `"` + visible(clip(s, 60)) + `"` }

// clip cuts s after about so many bytes, at a whole character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// scriptsOf returns the writing systems of the letters of s. Those that are
// written together in one language count as one.
func scriptsOf(s string) []string {
	var found []string
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		for name, table := range unicode.Scripts {
			if !unicode.Is(table, r) {
				continue
			}
			switch name {
			case "Common", "Inherited":
				continue
			case "Hiragana", "Katakana", "Hangul", "Bopomofo":
				name = "Han"
			}
			found = appendNew(found, name)
		}
	}
	return found
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
