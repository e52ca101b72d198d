package skill

import "testing"

// SEP-2640: what a client is told of a frontmatter is every field that the author wrote.
func TestFrontmatterAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		"---\nname: a\ndescription: b\nmetadata: {version: 1.10, deep: [x]}\nextra: true\n---\nbody": `{"name":"a","description":"b","metadata":{"version":1.10,"deep":["x"]},"extra":true}`,
		"---\nname: a\ndescription: use: this\n---\n":                                                `{"name":"a","description":"use: this"}`,
		"---\n- a\n---\n": "",
		"no frontmatter":  "",
		"---\nname: a\n":  "",
	} {
		if got := string(Frontmatter([]byte(text))); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
