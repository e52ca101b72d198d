package bundle_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

func TestParseDigest(t *testing.T) {
	d := bundle.Sum([]byte("x"))
	if got, err := bundle.ParseDigest(d.String()); err != nil || got != d {
		t.Errorf("got %s, %v", got, err)
	}
	if got, want := d.String(), "sha256:"+d.Hex(); got != want {
		t.Errorf("String is %q, want %q", got, want)
	}
	hex := d.Hex()
	for _, tt := range []struct{ name, text string }{
		{"empty", ""},
		{"prefix alone", "sha256:"},
		{"no prefix", hex},
		{"upper case", "sha256:" + strings.ToUpper(hex)},
		{"upper-case prefix", "SHA256:" + hex},
		{"another function", "sha512:" + hex},
		{"short", "sha256:" + hex[:63]},
		{"abbreviated", "sha256:" + hex[:12]},
		{"long", "sha256:" + hex + "0"},
		{"blank behind", "sha256:" + hex + " "},
		{"blank before", " sha256:" + hex},
		{"line feed", "sha256:" + hex + "\n"},
		{"not hex", "sha256:" + strings.Repeat("g", 64)},
		{"not ASCII", "sha256:" + strings.Repeat("é", 32)},
		{"zero", "sha256:" + strings.Repeat("0", 64)},
	} {
		if got, err := bundle.ParseDigest(tt.text); !errors.Is(err, bundle.ErrDigest) || !got.IsZero() {
			t.Errorf("%s: got %s, %v; want ErrDigest", tt.name, got, err)
		}
	}
}

// One digest has one text.
func FuzzParseDigest(f *testing.F) {
	f.Add(bundle.Sum(nil).String())
	f.Add("sha256:" + strings.Repeat("A", 64))
	f.Fuzz(func(t *testing.T, s string) {
		d, err := bundle.ParseDigest(s)
		if err != nil {
			if !errors.Is(err, bundle.ErrDigest) || !d.IsZero() {
				t.Errorf("got %s, %v", d, err)
			}
			return
		}
		if d.String() != s || d.IsZero() {
			t.Errorf("%q is read as %q", s, d)
		}
	})
}

// A zero digest is left out of JSON and read back as zero; a wrong one is an error.
func TestDigestJSON(t *testing.T) {
	type doc struct {
		D bundle.Digest `json:"d"`
		O bundle.Digest `json:"o,omitzero"`
	}
	d := bundle.Sum([]byte("x"))
	for _, tt := range []struct {
		name, json string
		doc        doc
	}{
		{"zero", `{"d":""}`, doc{}},
		{"set", `{"d":"` + d.String() + `","o":"` + d.String() + `"}`, doc{d, d}},
	} {
		got, err := json.Marshal(tt.doc)
		if err != nil || string(got) != tt.json {
			t.Errorf("%s: Marshal is %s, %v; want %s", tt.name, got, err, tt.json)
		}
		back := doc{D: bundle.Sum(nil)}
		if err := json.Unmarshal([]byte(tt.json), &back); err != nil || back != tt.doc {
			t.Errorf("%s: Unmarshal is %v, %v; want %v", tt.name, back, err, tt.doc)
		}
	}
	for _, text := range []string{`{"d":"x"}`, `{"d":"` + d.Hex() + `"}`, `{"d":"sha256:` + strings.ToUpper(d.Hex()) + `"}`, `{"d":[1]}`, `{"d":1}`} {
		back := doc{D: d}
		if err := json.Unmarshal([]byte(text), &back); err == nil {
			t.Errorf("Unmarshal(%s) takes it for %s", text, back.D)
		}
	}
}
