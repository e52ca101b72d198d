package audit

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// One call cannot fill the log: each bound holds at its value and refuses one more.
func TestEntryLimits(t *testing.T) {
	long, over := strings.Repeat("x", MaxText), strings.Repeat("x", MaxText+1)
	tests := []struct {
		name string
		set  func(e *Entry, text string)
	}{
		{"id", func(e *Entry, s string) { e.ID = s }},
		{"tenant", func(e *Entry, s string) { e.Tenant = s }},
		{"actor", func(e *Entry, s string) { e.Actor = s }},
		{"subject", func(e *Entry, s string) { e.Subject = s }},
		{"run", func(e *Entry, s string) { e.Run = s }},
		{"name of a fact", func(e *Entry, s string) { e.Facts = []Fact{{s, ""}} }},
		{"value of a fact", func(e *Entry, s string) { e.Facts = []Fact{{"a", s}} }},
	}
	for _, tt := range tests {
		e := Entry{Time: time.UnixMicro(0), Tenant: "t", Kind: Host, Count: 1}
		if tt.set(&e, long); e.check() != nil {
			t.Errorf("%s of %d bytes: %v", tt.name, MaxText, e.check())
		}
		for _, bad := range []string{over, "a\xff"} {
			if tt.set(&e, bad); !errors.Is(e.check(), ErrEntry) {
				t.Errorf("%s of %d bytes: got %v, want ErrEntry", tt.name, len(bad), e.check())
			}
		}
	}
	e := Entry{Time: time.UnixMicro(0), Tenant: "t", Kind: Host, Count: 1, Facts: manyFacts(MaxFacts)}
	if err := e.check(); err != nil {
		t.Errorf("%d facts: %v", MaxFacts, err)
	}
	if e.Facts = manyFacts(MaxFacts + 1); !errors.Is(e.check(), ErrEntry) {
		t.Errorf("%d facts: got %v, want ErrEntry", MaxFacts+1, e.check())
	}
}

func TestFacts(t *testing.T) {
	got := Facts("b", "2", "a", "1", "none", "", "c", "3")
	if diff := cmp.Diff([]Fact{{"a", "1"}, {"b", "2"}, {"c", "3"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e := Entry{Facts: got}
	if e.Fact("b") != "2" || e.Fact("none") != "" {
		t.Errorf("b is %q, none is %q", e.Fact("b"), e.Fact("none"))
	}
	defer func() {
		if recover() == nil {
			t.Error("an odd number does not panic")
		}
	}()
	//lint:ignore SA5012 that it panics is the test
	Facts("a", "1", "b")
}

func TestClip(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"short", "ünï", "ünï"},
		{"at the bound", strings.Repeat("x", MaxText), strings.Repeat("x", MaxText)},
		{"one above", strings.Repeat("x", MaxText+1), strings.Repeat("x", MaxText-3) + "…"},
		{"a whole character at the cut", strings.Repeat("é", MaxText), strings.Repeat("é", (MaxText-3)/2) + "…"},
		{"not UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"half a surrogate", "\xed\xa0\x80", "\uFFFD"},
	} {
		if got := Clip(tt.in); got != tt.want {
			t.Errorf("%s: got %d bytes %.20q, want %d", tt.name, len(got), got, len(tt.want))
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add(strings.Repeat("\xff", MaxText))
	f.Add(strings.Repeat("\U0001f600", 1024) + "x")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clip(s)
		if checkText(got) != nil {
			t.Errorf("an entry does not hold what Clip returns: %d bytes", len(got))
		}
		if utf8.ValidString(s) && len(s) <= MaxText && got != s {
			t.Error("Clip changes what an entry holds")
		}
	})
}
