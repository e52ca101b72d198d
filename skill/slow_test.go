package skill

import (
	"strings"
	"testing"
	"time"
)

// Whatever stands in SKILL.md or tracon.yaml, reading it takes about as long as
// its size suggests.
func TestReadingIsLinear(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, (MaxMarkdown-200)/len(unit)) }
	for name, text := range map[string]string{
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
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, _, _ = readMarkdown([]byte("---\nname: x\ndescription: d\n"+text+"\n---\n"), "x")
			_, _ = readDeclaration([]byte(text))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			} else {
				t.Log(took)
			}
		})
	}
}
