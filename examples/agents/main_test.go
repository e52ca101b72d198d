package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/toolset"
)

// newTools is the example's tools over plain processes, which run on every system.
func newTools(t *testing.T) *toolset.Session {
	t.Helper()
	e, err := process.New(process.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := open(t.Context(), filepath.FromSlash("../skills"), e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.runner.Close(context.Background()); err != nil { // the test's own is over
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return h.tools.For(tenant, "agent")
}

// loops are the three, each with the provider that it asks.
var loops = []struct {
	name  string
	serve func(*testing.T, []turn) *standIn
}{
	{"openai", chat},
	{"anthropic", messages},
	{"eino", chat},
}

// askScripted runs a loop against a scripted model, as the command does.
func askScripted(t *testing.T, loop string, tools *toolset.Session, s *standIn) (string, error) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for _, name := range []string{"OPENAI", "ANTHROPIC"} {
		t.Setenv(name+"_BASE_URL", server.URL)
		t.Setenv(name+"_API_KEY", "stand-in")
	}
	return run(t.Context(), loop, "stand-in", tools, "How far is a marathon in km?")
}

// Case 59, R13: in each loop a model does the whole path, and puts right what was refused.
func TestLoops(t *testing.T) {
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			s := l.serve(t, turns)
			answer, err := askScripted(t, l.name, newTools(t), s)
			if err != nil || answer != "A marathon has 42.1647 km." || s.next != len(turns) {
				t.Errorf("after %d turns: %q, %v", s.next, answer, err)
			}
		})
	}
}

// A model that only ever calls tools does not hold the program.
func TestLoopsEnd(t *testing.T) {
	var forever []turn
	for range 2 * maxTurns {
		forever = append(forever, turns[0])
	}
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			s := l.serve(t, forever)
			if answer, err := askScripted(t, l.name, newTools(t), s); err == nil {
				t.Errorf("it answered %q", answer)
			}
			if s.next > maxTurns+1 {
				t.Errorf("it took %d turns, want %d at most", s.next, maxTurns)
			}
		})
	}
}

// R9: what the tenant has no grant for runs in no loop's hands.
func TestOnlyWhatIsGranted(t *testing.T) {
	r := newTools(t).Call(t.Context(), toolset.RunSkillScript, json.RawMessage(`{"skill":"csv-summary","script":"scripts/summarize.py"}`), nil)
	if !r.Failed || !strings.HasPrefix(r.Text, "grant: ") {
		t.Errorf("%s", r.Text)
	}
}
