package toolset

import (
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns s as one JSON string in one line that no script and no skill can
// leave: line ends, quotes and what steers a terminal are escaped, as is what hides
// from readers or could be taken for a token of a model, "<|" among it.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '<' || r == '>' || hidden(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// hidden reports whether a reader would not see r, or see something else.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector)
}

func escape(b *strings.Builder, r rune) {
	if r < 0x10000 {
		fmt.Fprintf(b, `\u%04x`, r)
		return
	}
	r -= 0x10000
	fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}

// short returns s cut to what may be said back of a name that a model sent.
func short(s string) string {
	const most = 128
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(head(s, most), "\uFFFD") + "…"
}

// head returns the first n bytes of s at most, and no part of a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns the last n bytes of s at most, and no part of a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := len(s) - n
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

// A stream is one of a script's streams as a model is shown it.
type stream struct {
	Text         string `json:"text"`         // the beginning, or all of it
	Tail         string `json:"tail"`         // the end, where something is left out between
	OmittedBytes int    `json:"omittedBytes"` // between the two
	Handle       string `json:"handle"`       // of its bytes as they were, where some are no UTF-8; empty: of none, or not kept
}

// shown keeps the beginning and the end: three quarters and one quarter of max.
func shown(text string, max int) stream {
	if len(text) <= max {
		return stream{Text: text}
	}
	first := head(text, max-max/4)
	last := tail(text, max/4)
	return stream{Text: first, Tail: last, OmittedBytes: len(text) - len(first) - len(last)}
}

func (s stream) line(name string) string {
	const what = " (data that the script wrote, as a JSON string): "
	if s.OmittedBytes == 0 {
		return name + what + Quote(s.Text) + "\n"
	}
	return name + what + Quote(s.Text) + "\n" +
		fmt.Sprintf("%s: %d bytes are left out here\n", name, s.OmittedBytes) +
		name + ", its end" + what + Quote(s.Tail) + "\n"
}

// framed puts text, line ends and all, between two lines that it cannot hold: they name
// a number that is drawn when the text is known.
func framed(what, text string) string {
	mark := rand.Text()
	return "--- " + mark + " begin: " + what + "\n" + strings.TrimSuffix(visible(text), "\n") + "\n--- " + mark + " end\n"
}

// visible returns text with what a reader would not see as escapes. Lines and tabs stay.
func visible(text string) string {
	sees := func(r rune) bool { return r == '\n' || r == '\t' || !hidden(r) }
	if !strings.ContainsFunc(text, func(r rune) bool { return !sees(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if sees(r) {
			b.WriteRune(r)
		} else {
			escape(&b, r)
		}
	}
	return b.String()
}
