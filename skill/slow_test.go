package skill

import (
	"strings"
	"testing"
)

// Whatever stands in SKILL.md or tracon.yaml, reading it takes about as long as
// its size suggests: BenchmarkReading shows it for these. Short tests have an eighth of it.
func slowTexts() map[string]string {
	most := MaxMarkdown - 200
	if testing.Short() {
		most /= 8
	}
	fill := func(unit string) string { return strings.Repeat(unit, most/len(unit)) }
	return map[string]string{
		"fields":             fill("a:\n"),
		"broken fields":      fill("a: [\n"),
		"unquoted colons":    fill("a: b: c\n"),
		"one long line":      "a: " + fill("b: "),
		"flow maps":          "a: [" + fill("{a: b},"),
		"open brackets":      "a: " + fill("["),
		"open maps":          "a: " + fill("{"),
		"question marks":     fill("? "),
		"dashes":             fill("- "),
		"anchors":            "a: [" + fill("&a b,"),
		"aliases":            "a: &a b\nc: [" + fill("*a,"),
		"unclosed quote":     "a: \"" + fill("b\n  "),
		"long block":         "a: |\n" + fill("  b\n"),
		"folded block":       "a: >\n" + fill("  b\n\n"),
		"comments":           fill("# b\n"),
		"comments in a list": "a:\n" + fill("  # b\n  - c\n"),
		"tags":               "a: [" + fill("!a b,"),
		"directives":         fill("%A b\n"),
		"carriage returns":   "a: " + fill("b\r"),
		"many documents":     fill("--- a\n"),
		"deep block":         "a:\n" + strings.Repeat(" ", 300) + fill("b:\n"),
		"plain over lines":   "a: b\n" + fill("  c\n"),
		"escapes":            "a: \"" + fill("\\u00e9") + "\"",
		"invisible":          "a: \"" + fill("\u200b") + "\"",
	}
}

func BenchmarkReading(b *testing.B) {
	for name, text := range slowTexts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(2 * int64(len(text)))
			for b.Loop() {
				readSlow(text)
			}
		})
	}
}

func readSlow(text string) (m, d []Diagnostic) {
	_, _, m = readMarkdown([]byte("---\nname: x\ndescription: d\n"+text+"\n---\n"), "x")
	_, d = readDeclaration([]byte(text))
	return m, d
}

// What is said of such a text stays bounded too.
func TestSlowTextsAreAnswered(t *testing.T) {
	for name, text := range slowTexts() {
		t.Run(name, func(t *testing.T) {
			m, d := readSlow(text)
			if len(m) > 200 || len(d) > 200 {
				t.Errorf("%d and %d diagnostics", len(m), len(d))
			}
		})
	}
}
