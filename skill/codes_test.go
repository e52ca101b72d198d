package skill

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Programs filter by codes, so none is renamed or taken away; new ones are added
// here.
func TestCodesAreFrozen(t *testing.T) {
	want := strings.Fields(`
		archive-backslash archive-folder
		body-empty body-long
		compatibility-long
		declaration-arguments declaration-description declaration-flags declaration-key declaration-kind declaration-module declaration-none
		declaration-open declaration-outputs declaration-path declaration-schema declaration-timeout declaration-yaml
		description-hidden description-long description-missing
		field-kind field-unknown
		flag-unused
		folder-deep folder-unreadable
		frontmatter-late frontmatter-missing frontmatter-open frontmatter-quotes frontmatter-value frontmatter-yaml
		interpreter-unknown
		link link-missing link-outside
		markdown-bom markdown-empty markdown-encoding markdown-large markdown-missing markdown-unreadable
		metadata-kind
		name-folder name-form name-long name-missing name-scripts name-twice name-unusable
		packages path problems-more
		risk-encoded risk-environment risk-eval risk-invisible risk-mixed-scripts risk-more risk-network risk-subprocess
		scan-stopped script-missing script-module script-named script-undescribed
		shell-crlf shell-options skill-inside skill-unreadable special-file`)
	made := regexp.MustCompile(`(?:say\((?:Error|Warning|Note), |bad\(|leave\(|problem\((?:Error|Warning|Note), |\{(?:Error|Warning|Note), |risk[A-Z][a-z]+ += )"([^"]*)"`)
	files, err := filepath.Glob("*.go")
	must(t, err)
	var got []string
	for _, p := range files {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		b, err := os.ReadFile(p)
		must(t, err)
		for _, m := range made.FindAllStringSubmatch(string(b), -1) {
			got = appendNew(got, m[1])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, code := range got {
		if !slices.Contains(want, code) {
			t.Errorf("the code %q is new: freeze it here", code)
		}
	}
	for _, code := range want {
		if !slices.Contains(got, code) {
			t.Errorf("the code %q is gone", code)
		}
	}
	for code := range strict {
		if !slices.Contains(got, code) {
			t.Errorf("the lint takes %q more strictly, which nobody says", code)
		}
	}
}
