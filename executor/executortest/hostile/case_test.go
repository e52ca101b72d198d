//go:build linux

package hostile

import (
	"embed"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each case has a script and makes attempts; each script belongs to a case; each
// wall has a case that asks for it.
func TestCases(t *testing.T) {
	ids := map[string]bool{}
	walls := map[Wall]bool{}
	for _, c := range slices.Concat(harmlessCases(), hurtfulCases()) {
		if ids[c.id] || !regexp.MustCompile(`^[A-Z]\d\d$`).MatchString(c.id) {
			t.Errorf("the id %q is bad or stands twice", c.id)
		}
		ids[c.id], walls[c.wall] = true, true
		if _, ok := c.text("py"); !ok {
			t.Errorf("%s has no script in Python", c.id)
		}
		if len(c.tries) == 0 || c.title == "" || !slices.Contains(Walls(), c.wall) || !regexp.MustCompile(`^A\d+/[A-Z][A-Za-z]+$`).MatchString(c.class) {
			t.Errorf("%s: something is missing: %+v", c.id, c)
		}
		names := map[string]bool{}
		for _, a := range c.tries {
			if names[a.name] || strings.ContainsAny(a.name, "\t\n") {
				t.Errorf("%s: the attempt %q is bad or stands twice", c.id, a.name)
			}
			names[a.name] = true
		}
		for _, n := range c.numbers {
			if numbers[n] == 0 && n != "read" {
				t.Errorf("%s: the system call %q has no number", c.id, n)
			}
		}
	}
	for _, w := range Walls() {
		if !walls[w] || w.Must() == "" {
			t.Errorf("no case is about the wall %q, or nobody says what it holds", w)
		}
	}
	for folder, from := range map[string]*embed.FS{"probes": &harmlessProbes, "hurtful": &hurtfulProbes} {
		files, err := fs.ReadDir(from, folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name, _, _ := strings.Cut(f.Name(), "."); !ids[name] && name != "prelude" && name != "calls" {
				t.Errorf("no case has the script %s", f.Name())
			}
			// By these words internal/archtest knows that no binary holds such a script.
			text, err := from.ReadFile(folder + "/" + f.Name())
			if marked := strings.HasPrefix(string(text), "# Hurtful: "); err != nil || marked != (folder == "hurtful") {
				t.Errorf("%s/%s: marked as hurtful: %v, %v", folder, f.Name(), marked, err)
			}
		}
	}
}

// What limits are there for cannot be reached by way of [RunHarmless].
func TestLimitsAreHurtful(t *testing.T) {
	for _, c := range harmlessCases() {
		if slices.Contains([]Wall{Memory, Tasks, Processors, Space, OpenFiles}, c.wall) {
			t.Errorf("%s is about a limit: without it, a host suffers", c.id)
		}
	}
}

// A word by which processes of a run are found is long, and can be a time to sleep.
func TestNewDigits(t *testing.T) {
	for range 1000 {
		if d := newDigits(); !regexp.MustCompile(`^\d{18}$`).MatchString(d) {
			t.Fatalf("got %q", d)
		}
	}
}
