package params

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A cursor is of one list: of another tenant's, another operation's or another filter's
// it is refused (T02), as is what is none.
func TestCursor(t *testing.T) {
	list := ListOf("acme", "list-grants", "greeter")
	text := NewCursor(list, "01900000-0000-7000-8000-000000000000")
	if got, err := ReadCursor(list, text); err != nil || got != "01900000-0000-7000-8000-000000000000" {
		t.Errorf("read %q, %v", got, err)
	}
	if got, err := ReadCursor(list, ""); err != nil || got != "" {
		t.Errorf("the beginning: %q, %v", got, err)
	}
	for _, tt := range []struct{ name, list, text string }{
		{"another tenant's", ListOf("globex", "list-grants", "greeter"), text},
		{"another operation's", ListOf("acme", "list-keys", "greeter"), text},
		{"another filter's", ListOf("acme", "list-grants", ""), text},
		{"a filter that ends where a tenant does", ListOf("acmelist-grants", "", "greeter"), text},
		{"cut", list, text[:len(text)-1]},
		{"without a position", list, base64.RawURLEncoding.EncodeToString([]byte("1" + list))},
		{"of another version", list, base64.RawURLEncoding.EncodeToString([]byte("2" + list + "x"))},
		{"no base64", list, "%%%"},
		{"padded", list, text + "="},
		{"with a line feed", list, text[:8] + "\n" + text[8:]},
		{"too long", list, base64.RawURLEncoding.EncodeToString([]byte("1" + list + strings.Repeat("x", maxCursor)))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := ReadCursor(tt.list, tt.text); !errors.Is(err, client.BadCursor) {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

// If-Match is a star or strong ETags; what two readers may take for two is refused.
func TestParseTags(t *testing.T) {
	one, two := ETag("grant", "acme", "a"), ETag("grant", "acme", "b")
	for _, tt := range []struct {
		name, header string
		ok, matches  bool // against one
	}{
		{"star", "*", true, true},
		{"the tag", one, true, true},
		{"another", two, true, false},
		{"a list", two + ", " + one, true, true},
		{"a list without blanks", two + "," + one, true, true},
		{"weak", "W/" + one, false, false},
		{"empty", "", false, false},
		{"a word", "abc", false, false},
		{"no end", `"abc`, false, false},
		{"no comma", one + " " + two, false, false},
		{"a comma at the end", one + ",", false, false},
		{"a star in a list", "*, " + one, false, false},
		{"too long", strings.Repeat(one+",", 100) + one, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseTags(tt.header)
			if (err == nil) != tt.ok {
				t.Fatalf("error %v", err)
			}
			if err != nil && !errors.Is(err, client.BadRequest) {
				t.Errorf("error %v", err)
			}
			if got := err == nil && m.Check(one) == nil; got != tt.matches {
				t.Errorf("matches: %v", got)
			}
		})
	}
}

// The words of a tag are told apart: no two states share one.
func TestETag(t *testing.T) {
	seen := map[string]string{}
	for _, words := range [][]string{{}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}} {
		tag, name := ETag(words...), strings.Join(words, "|")
		if other, ok := seen[tag]; ok {
			t.Errorf("%q and %q have the tag %s", name, other, tag)
		}
		seen[tag] = name
		if m, err := ParseTags(tag); err != nil || m.Check(tag) != nil {
			t.Errorf("%s is no tag: %v", tag, err)
		}
	}
}

// What is read of a cursor is what was written, or nothing.
func FuzzReadCursor(f *testing.F) {
	list := ListOf("acme", "list-grants")
	f.Add(NewCursor(list, "x"))
	f.Add("")
	f.Add("MQ")
	f.Fuzz(func(t *testing.T, text string) {
		position, err := ReadCursor(list, text)
		if err == nil && NewCursor(list, position) != text {
			t.Errorf("%q was read as %q, which is written %q", text, position, NewCursor(list, position))
		}
		if other, err := ReadCursor(ListOf("globex", "list-grants"), text); err == nil && text != "" && position != "" {
			t.Errorf("%q is a cursor of two tenants: %q", text, other)
		}
	})
}

// No If-Match that is read matches a tag that does not stand in it.
func FuzzParseTags(f *testing.F) {
	tag := ETag("a")
	f.Add("*")
	f.Add(tag)
	f.Add(`"a", "b"`)
	f.Fuzz(func(t *testing.T, header string) {
		m, err := ParseTags(header)
		if err != nil {
			return
		}
		if m.Any() != (strings.Trim(header, " \t") == "*") {
			t.Errorf("%q matches everything: %v", header, m.Any())
		}
		if !m.Any() && m.Check(tag) == nil && !strings.Contains(header, tag) {
			t.Errorf("%q matches %s", header, tag)
		}
	})
}
