package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// characters looks for what does not show itself and for words whose letters are
// of several writing systems. Nearly every line is ASCII and costs one pass.
func (r *signer) characters(line string, at int) {
	plain := true
	for i := range len(line) {
		c := line[i]
		plain = plain && c < utf8.RuneSelf
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
			r.sign(riskInvisible, at, fmt.Sprintf("U+%04X", c))
		}
	}
	if plain {
		return
	}
	prev, flag := rune(0), false // the character before; the flag of a region is being spelt
	var latin, other, odd bool
	start := 0
	end := func(i int) {
		if latin && other || odd {
			r.sign(riskScripts, at, line[start:i])
		}
		latin, other, odd = false, false, false
	}
	for i, c := range line {
		if c == utf8.RuneError {
			end(i)
			prev = c
			continue
		}
		if concealed(c, prev, flag, at == 1 && i == 0) {
			r.sign(riskInvisible, at, fmt.Sprintf("U+%04X", c))
		}
		flag = c == 0x1F3F4 || flag && isTag(c)
		switch {
		case unicode.IsLetter(c) || unicode.IsMark(c):
			if !latin && !other && !odd {
				start = i
			}
			latin = latin || c < utf8.RuneSelf || unicode.Is(unicode.Latin, c)
			other = other || alike(c)
			odd = odd || r.script && styled(c)
		case !unicode.IsDigit(c) && !unicode.Is(unicode.Cf, c):
			end(i)
		}
		prev = c
	}
	end(len(line))
}

// greekAlike are the Greek letters that look like Latin ones. Others, as in Δx,
// deceive nobody.
const greekAlike = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχϲϳ"

// alike reports whether c is of a writing system, or is a letter, that is taken
// for Latin at a glance.
func alike(c rune) bool {
	if unicode.Is(unicode.Greek, c) {
		return strings.ContainsRune(greekAlike, c)
	}
	return unicode.In(c, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret, unicode.Osage)
}

// styled reports whether c is a Latin letter in another dress, which Python takes
// for the plain one in a name: 𝐞𝐯𝐚𝐥 and ｅｖａｌ are eval.
func styled(c rune) bool {
	return c >= 0x1D400 && c <= 0x1D7FF || c >= 0xFF21 && c <= 0xFF3A || c >= 0xFF41 && c <= 0xFF5A
}

func isTag(c rune) bool { return c >= 0xE0000 && c <= 0xE007F }

// concealed reports whether c hides something where it stands: behind prev, in
// the flag of a region, or at the very beginning of a file.
func concealed(c, prev rune, flag, first bool) bool {
	switch {
	case c == '\uFEFF':
		return !first
	case c == '\u200C' || c == '\u200D':
		// They join and part letters in many scripts of Asia, and emoji.
		return prev < 0x0600
	case c >= 0xFE00 && c <= 0xFE0F:
		// One behind a sign says how to draw it; several can spell a text.
		return prev >= 0xFE00 && prev <= 0xFE0F || prev < utf8.RuneSelf && !strings.ContainsRune("0123456789#*", prev)
	case isTag(c):
		return !flag
	case unicode.Is(unicode.Prepended_Concatenation_Mark, c):
		return false
	}
	return c >= 0x80 && c <= 0x9f || c == '\u2028' || c == '\u2029' ||
		unicode.In(c, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
