package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Kind says what an entry records. The set is closed.
type Kind string

// The kinds of entries.
const (
	Admission Kind = "admission" // a call passed every gate; written before the executor is called
	Refusal   Kind = "refusal"   // a gate refused a call
	Ending    Kind = "ending"    // what came of an admitted call
	Granted   Kind = "grant"     // a grant was made
	Revoked   Kind = "revoke"    // a grant was revoked
	Policy    Kind = "policy"    // a tenant's switch or limits were changed
	Host      Kind = "host"      // the host's switch or allow-list was changed
	Imported  Kind = "import"    // a skill was imported for a tenant
	Deleted   Kind = "delete"    // a tenant's imported skill was deleted
	Runtime   Kind = "runtime"   // a runtime's name was given to a root file system, or taken away
	Key       Kind = "key"       // a key that lets somebody in was made, replaced or taken back
	Tenant    Kind = "tenant"    // a tenant was made, or switched, or its quotas were changed
	Keeping   Kind = "log"       // the log's own administration: its key, a loss that was accepted, what was removed by age
)

var kinds = []Kind{Admission, Refusal, Ending, Granted, Revoked, Policy, Host, Imported, Deleted, Runtime, Key, Tenant, Keeping}

// Kinds returns all kinds of entries.
func Kinds() []Kind { return slices.Clone(kinds) }

// A Fact is one thing that an entry says, by name.
type Fact struct{ Name, Value string }

// An Entry says who did what, or asked for what and how it was answered.
type Entry struct {
	ID      string    // UUIDv7; empty: [Log] gives one
	Time    time.Time // kept in UTC to the microsecond; zero: [Log] takes the present
	Tenant  string    // whose history this belongs to; required
	Actor   string    // who acted
	Kind    Kind      // required
	Subject string    // what it is about, such as "unit-converter scripts/convert.py"
	Run     string    // the id of the call, where there is one: it ties an admission to its ending
	Count   uint64    // how many alike this stands for; zero means one
	Facts   []Fact    // in the bytewise order of distinct names; see [Facts]
}

// Facts returns facts from names and values in turn, ordered as a leaf needs
// them, without those of an empty value. It panics on an odd number.
func Facts(namesAndValues ...string) []Fact {
	if len(namesAndValues)%2 != 0 {
		panic("audit: Facts with a name and no value")
	}
	var facts []Fact
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			facts = append(facts, Fact{namesAndValues[i], namesAndValues[i+1]})
		}
	}
	slices.SortFunc(facts, func(a, b Fact) int { return strings.Compare(a.Name, b.Name) })
	return facts
}

// Fact returns the value of the fact name, and "" where the entry has none.
func (e Entry) Fact(name string) string {
	for _, f := range e.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Bounds of an entry. They keep one call from filling the log.
const (
	MaxText  = 4096 // bytes of one text
	MaxFacts = 64
)

// ErrEntry is wrapped by the error for an entry that cannot be written: a
// mistake of the caller, not of the log.
var ErrEntry = errors.New("audit: bad entry")

func (e Entry) check() error {
	switch {
	case e.Tenant == "":
		return fmt.Errorf("%w: no tenant", ErrEntry)
	case !slices.Contains(kinds, e.Kind):
		return fmt.Errorf("%w: unknown kind %q", ErrEntry, e.Kind)
	case len(e.Facts) > MaxFacts:
		return fmt.Errorf("%w: %d facts, at most %d", ErrEntry, len(e.Facts), MaxFacts)
	case e.Time.Year() < 1 || e.Time.Year() > 9999:
		return fmt.Errorf("%w: a time in the year %d has no text", ErrEntry, e.Time.Year())
	case e.Count == 0:
		return fmt.Errorf("%w: count is zero", ErrEntry)
	}
	for _, s := range []string{e.ID, e.Tenant, e.Actor, e.Subject, e.Run} {
		if err := checkText(s); err != nil {
			return err
		}
	}
	for i, f := range e.Facts {
		if f.Name == "" || i > 0 && e.Facts[i-1].Name >= f.Name {
			return fmt.Errorf("%w: facts are not in order at %q", ErrEntry, f.Name)
		}
		if err := errors.Join(checkText(f.Name), checkText(f.Value)); err != nil {
			return err
		}
	}
	return nil
}

func checkText(s string) error {
	if len(s) > MaxText || !utf8.ValidString(s) {
		return fmt.Errorf("%w: a text of %d bytes, at most %d of UTF-8", ErrEntry, len(s), MaxText)
	}
	return nil
}

// Clip cuts s to what an entry holds, replaces what is not UTF-8, and marks a
// cut with an ellipsis. Names that strangers send go through it.
func Clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxText {
		return s
	}
	cut := MaxText - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
