package config

import (
	"os"
	"strings"
	"testing"
)

// Every setting stands in the operator's guide, with the words of the table.
func TestGuideHasEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(Settings) == 0 {
		t.Fatal("there are no settings")
	}
	for _, s := range Settings {
		if row := "\n| `" + s.Key + "` | " + s.Doc + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/operators-guide.md lacks the row:%s", row)
		}
	}
}
