package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every flag of `policy set` stands in the operator's guide, with the words of
// its help.
func TestGuideHasEveryPolicyFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := new(app).policySetCmd().Flags()
	names := regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(flags.FlagUsages(), -1)
	if len(names) == 0 {
		t.Fatal("policy set has no flags")
	}
	for _, m := range names {
		if row := "\n| `--" + m[1] + "` | " + flags.Lookup(m[1]).Usage + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/operators-guide.md lacks the row:%s", row)
		}
	}
}

// Every verb stands in the README's table.
func TestReadmeHasEveryVerb(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	verbs := new(app).root().Commands()
	if len(verbs) == 0 {
		t.Fatal("there are no verbs")
	}
	for _, c := range verbs {
		if c.Name() == "help" {
			continue // it tells of the others
		}
		if row := regexp.MustCompile("\n\\| `(.*`, `)?" + c.Name() + "[ `]"); !row.Match(text) {
			t.Errorf("the README's table has no row that begins with `%s`", c.Name())
		}
	}
}
