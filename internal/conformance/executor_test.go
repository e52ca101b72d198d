//go:build linux

package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
)

// R19, R23, R24 and the rest: an executor of this house keeps every rule that an
// operator is told of, and no script is among them that takes without end.
func TestExecutor(t *testing.T) {
	// One language is enough here: the real binary does it in all of them.
	path := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(path, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	e, p := open(t)
	told := 0
	checks, err := Executor(t.Context(), e, p, func(Check) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	languages := map[string]int{}
	for _, c := range checks {
		languages[c.Language]++
		if !c.OK || len(c.Faults) > 0 {
			t.Errorf("%+v", c)
		}
		if slices.Contains([]string{"storm", "memory", "flood"}, c.Rule) {
			t.Errorf("%s: %q is not for an operator's host", c.Language, c.Rule)
		}
	}
	if told != len(checks) || languages["sh"] < 30 || languages[""] != 1 || len(languages) != 2 {
		t.Errorf("%d rules were told, and %v", told, languages)
	}
}

// An executor that breaks rules is found out, with the rule first.
func TestBadExecutor(t *testing.T) {
	checks, err := Executor(t.Context(), dead{}, executor.Posture{}, func(Check) {})
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for _, c := range checks {
		if !c.OK {
			broken++
			if !strings.ContainsAny(c.Faults[0], ":") || c.Rule == "" {
				t.Errorf("%+v names no rule", c)
			}
		}
	}
	if broken < len(checks)/2 {
		t.Errorf("of %d rules, an executor that runs nothing breaks %d", len(checks), broken)
	}
}

// Without any interpreter nothing is proved, and that is said.
func TestNoInterpreter(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	checks, err := Executor(t.Context(), dead{}, executor.Posture{}, func(Check) {})
	if err == nil || len(checks) > 0 {
		t.Errorf("got %v, %v", checks, err)
	}
}

// An operator who gives up gets what is known, and why there is no more.
func TestGivingUpRules(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	checks, err := Executor(ctx, dead{}, executor.Posture{}, func(Check) { cancel(enough) })
	if !errors.Is(err, enough) || len(checks) != 1 {
		t.Errorf("got %d checks and error %v", len(checks), err)
	}
}
