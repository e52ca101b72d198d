package access_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/mask"
)

// A key has 256 random bits and a form that scanners know, and no two are alike.
func TestSecret(t *testing.T) {
	form := regexp.MustCompile(`^tracon_[a-z2-7]{16}_[a-z2-7]{59}$`)
	seen := map[string]bool{}
	for range 100 {
		s := access.NewSecret()
		text := s.Reveal()
		if !form.MatchString(text) || seen[text[:23]] || seen[text[24:]] {
			t.Fatalf("the text %q has another form, or a part of one before", text)
		}
		seen[text[:23]], seen[text[24:]] = true, true
		back, err := access.ParseSecret(text)
		if err != nil || back != s || back.ID() != s.ID() || !back.Hash().Equal(s.Hash()) {
			t.Fatalf("%q is read as %v, error %v", text, back, err)
		}
		if text[7:23] != s.ID() || !access.ValidID(s.ID()) {
			t.Errorf("the id of %q is %q", text, s.ID())
		}
	}
}

// The text of a key is read exactly: one letter that differs makes it none, so that
// none is ever looked up that was not handed out.
func TestParseSecretIsStrict(t *testing.T) {
	text := access.NewSecret().Reveal()
	bad := map[string]string{
		"empty": "", "a blank before": " " + text, "a blank behind": text + " ", "a line feed behind": text + "\n", "upper case": strings.ToUpper(text),
		"cut": text[:len(text)-1], "twice": text + text, "no prefix": text[7:], "another prefix": "tracon-" + text[7:], "no id": "tracon_" + text[23:],
		"padding": text + "=", "NUL": text[:40] + "\x00" + text[41:], "the id alone": text[:23],
	}
	for i := range text {
		for _, c := range []byte("a7_0") {
			if text[i] != c {
				bad[fmt.Sprintf("%q at %d", c, i)] = text[:i] + string(c) + text[i+1:]
			}
		}
	}
	for name, s := range bad {
		if got, err := access.ParseSecret(s); err != access.ErrSecret || got != (access.Secret{}) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// A secret shows its id alone, however it is printed, logged or encoded.
func TestSecretIsNotShown(t *testing.T) {
	s := access.NewSecret()
	hidden := s.Reveal()[24:50]
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", []access.Secret{s})
		fmt.Fprintf(&out, verb+"\n", struct{ S access.Secret }{s})
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("made", "secret", s, "more", struct{ S access.Secret }{s})
	}
	text, err := json.Marshal(map[string]any{"s": s})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	if strings.Contains(out.String(), hidden) {
		t.Errorf("the secret %q is in:\n%s", hidden, out.String())
	}
	if raw := fmt.Sprintf("%x", s.Reveal()[24:50]); strings.Contains(out.String(), raw) {
		t.Errorf("the secret is there in hex:\n%s", out.String())
	}
	if !strings.Contains(out.String(), s.ID()) {
		t.Errorf("the id is not shown:\n%s", out.String())
	}
}

// Zero is closed: the zero Secret has no text, and the zero Hash equals none.
func TestZeroSecret(t *testing.T) {
	var s access.Secret
	if s.Reveal() != "" || s.Hash() != (access.Hash{}) || s.Hash().Equal(access.Hash{}) || s.Hash().Equal(access.NewSecret().Hash()) {
		t.Errorf("the zero secret has the text %q and the hash %v", s.Reveal(), s.Hash())
	}
}

// A hash is that of one id: it cannot be moved to another key's row.
func TestHash(t *testing.T) {
	a, b := access.NewSecret(), access.NewSecret()
	if a.Hash() == b.Hash() || a.Hash().Equal(b.Hash()) || !a.Hash().Equal(a.Hash()) {
		t.Error("two secrets have one hash, or one has two")
	}
	if back, err := access.ParseHash(a.Hash().String()); err != nil || back != a.Hash() {
		t.Errorf("the hash comes back as %v, %v", back, err)
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("A", 64), strings.Repeat("g", 64)} {
		if _, err := access.ParseHash(text); err == nil {
			t.Errorf("%q is taken for a hash", text)
		}
	}
}

// FuzzParseSecret: what is read has exactly one text.
func FuzzParseSecret(f *testing.F) {
	text := access.NewSecret().Reveal()
	for _, s := range []string{"", "tracon_", text, text[:len(text)-1] + "a", strings.Repeat("_", len(text)), "tracon_" + strings.Repeat("a", len(text)-7)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := access.ParseSecret(text)
		switch {
		case err != nil && s != access.Secret{}:
			t.Errorf("with an error came %v", s)
		case err == nil && (s.Reveal() != text || !access.ValidID(s.ID())):
			t.Errorf("%q is read, and has the text %q", text, s.Reveal())
		}
	})
}

// O09: the text of every key is known to the room that masks it, and nothing else is taken
// for one.
func TestEveryKeyIsMasked(t *testing.T) {
	m := mask.New(nil)
	for range 100 {
		text := access.NewSecret().Reveal()
		if got := m.Text("a" + text + "b"); got != "a"+mask.KeyLabel+"b" {
			t.Fatalf("%q", got)
		}
		other := text[:len(text)-1] + string("ab"[strings.Count(text[len(text)-1:], "a")])
		if got := m.Text(other); got != other {
			t.Errorf("a text whose checksum does not hold is masked: %q", got)
		}
	}
}
