package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/wire"
)

// A runner that says yes to everything, and runs nothing, is found out rule by rule,
// each with the rule's words first; so is one that says no to everything.
func TestBadRunners(t *testing.T) {
	for name, status := range map[string]int{"always yes": 200, "always no": 500} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/info" {
				_, _ = io.WriteString(w, `{"name":"bad","protocols":["tracon/1","tracon-live/1"],"tier":"sandbox","limits":{"timeoutSeconds":1}}`)
				return
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"exitCode":0,"standardOutput":"","standardError":""}`)
		}))
		told := 0
		r := Runner{Address: s.URL, Key: "k", Tenant: "t", Runtimes: map[string]string{"sh": "sh"}, Over: func(Check) { told++ }}
		checks, err := r.Run(t.Context())
		s.Close()
		if err != nil || told != len(checks) || len(checks) != len(plainRules)+len(ourRules)+len(liveRules) || r.Info.Name != "bad" {
			t.Fatalf("%s: %v, %d checks, %d told", name, err, len(checks), told)
		}
		for _, c := range checks {
			// Whoever refuses everything refuses what must be refused, too.
			refusal := slices.Contains([]string{"wrong digest", "duplicate member", "unknown runtime", "path for a runtime", "not JSON", "credential", "upload of another digest"}, c.Rule)
			if want := status != 200 && refusal; c.OK != want {
				t.Errorf("%s: %s: ok %t, %q", name, c.Rule, c.OK, c.Faults)
			}
			if !c.OK && !strings.Contains(c.Faults[0], ": ") {
				t.Errorf("%s: %q names no rule", name, c.Faults)
			}
		}
	}
}

// Whoever cannot be looked at is said to be so, and nothing is taken for held.
func TestRunnersThatCannotBeLookedAt(t *testing.T) {
	info := `{"requireTicket":true}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, info) }))
	defer s.Close()
	for name, address := range map[string]string{"asks for tickets": s.URL, "no URL": "::", "plain http elsewhere": "http://runner.example.org", "nobody": "http://127.0.0.1:1"} {
		r := Runner{Address: address, Tenant: "t", Runtimes: map[string]string{"sh": "sh"}}
		if checks, err := r.Run(t.Context()); err == nil || len(checks) > 0 {
			t.Errorf("%s: %v, %v", name, checks, err)
		}
	}
	info = `{}`
	r := Runner{Address: s.URL, Tenant: "t"}
	if checks, err := r.Run(t.Context()); err == nil || len(checks) > 0 {
		t.Errorf("no runtime: %v, %v", checks, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	r = Runner{Address: s.URL, Tenant: "t", Runtimes: map[string]string{"sh": "sh"}}
	checks, err := r.Run(t.Context())
	for _, c := range checks {
		if c.NotOffered != strings.HasPrefix(c.Rule, "live ") || c.NotOffered && (!c.OK || len(c.Faults) > 0) {
			t.Errorf("of a runner that shows nothing before the end: %+v", c)
		}
	}
	if err != nil || len(checks) != len(plainRules)+len(liveRules) {
		t.Errorf("the plain wire alone: %d checks, %v", len(checks), err)
	}
	r = Runner{Address: s.URL, Tenant: "t", Runtimes: map[string]string{"sh": "sh"}, Over: func(Check) { cancel(enough) }}
	if checks, err := r.Run(ctx); !errors.Is(err, enough) || len(checks) != 1 {
		t.Errorf("given up: %d checks, %v", len(checks), err)
	}
}

// A runner that shows what it must not, or not as it must, is found out.
func TestRunnersThatShowWrongly(t *testing.T) {
	answer := func(run wire.Run, stdout, stderr string, code int, truncated bool) string {
		line, err := wire.Frame{Answer: &wire.Answer{ExitCode: &code, StandardOutput: stdout, StandardError: stderr, Truncated: truncated,
			More: &wire.AnswerMore{ID: run.More.ID, Bundle: run.More.Bundle, Ending: wire.Ending{Kind: "exited", Code: code}}}}.Encode()
		if err != nil {
			t.Error(err)
		}
		return string(line)
	}
	piece := func(id string, offset int64, data string) string {
		line, err := wire.Frame{Output: &wire.Output{ID: id, Stream: wire.Stdout, Offset: offset, Data: []byte(data)}}.Encode()
		if err != nil {
			t.Error(err)
		}
		return string(line)
	}
	x := strings.Repeat("x", 1000)
	for _, tt := range []struct {
		name, rule string
		says       func(wire.Run) string
		ok         bool
	}{
		{"as it should", "live answer", func(r wire.Run) string { return piece(r.More.ID, 0, "in") + answer(r, "in", "err", 7, false) }, true},
		{"some of it was lost", "live answer", func(r wire.Run) string { return piece(r.More.ID, 5, "") + answer(r, "in", "err", 7, false) }, true},
		{"another run's output", "live answer", func(r wire.Run) string { return piece("another", 0, "in") + answer(r, "in", "err", 7, false) }, false},
		{"output that the answer has not", "live answer", func(r wire.Run) string { return piece(r.More.ID, 0, "out") + answer(r, "in", "err", 7, false) }, false},
		{"twice", "live answer", func(r wire.Run) string {
			return piece(r.More.ID, 0, "i") + piece(r.More.ID, 0, "n") + answer(r, "in", "err", 7, false)
		}, false},
		{"output behind the answer", "live answer", func(r wire.Run) string { return answer(r, "in", "err", 7, false) + piece(r.More.ID, 0, "in") }, false},
		{"an answer that lacks what was shown", "live answer", func(r wire.Run) string { return piece(r.More.ID, 0, "in") + answer(r, "", "err", 7, false) }, false},
		{"no answer", "live answer", func(r wire.Run) string { return piece(r.More.ID, 0, "in") }, false},
		{"a problem", "live answer", func(wire.Run) string { return `{"problem":{"code":"unknown"}}` + "\n" }, false},
		{"within the limit", "live limit", func(r wire.Run) string { return piece(r.More.ID, 0, x) + answer(r, x, "", 0, true) }, true},
		{"beyond the limit", "live limit", func(r wire.Run) string { return piece(r.More.ID, 0, x+"x") + answer(r, x, "", 0, true) }, false},
		{"all at once, and the end", "live output", func(r wire.Run) string { return answer(r, "so far", "", 0, false) }, false},
		{"while it runs", "live output", func(r wire.Run) string { return piece(r.More.ID, 0, "so ") + piece(r.More.ID, 3, "far") }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/info" {
					_, _ = io.WriteString(w, `{"protocols":["tracon/1","tracon-live/1"]}`)
					return
				}
				run, err := wire.ReadRun(r.Body, 0)
				if err != nil || run.More == nil || !strings.Contains(r.Header.Get("Accept"), wire.LiveType) {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				w.Header().Set("Content-Type", wire.LiveType+"; charset=utf-8")
				_, _ = io.WriteString(w, tt.says(run))
			}))
			defer s.Close()
			r := Runner{Address: s.URL, Tenant: "t", Runtimes: map[string]string{"sh": "sh"}}
			checks, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range checks {
				if c.Rule == tt.rule && c.OK != tt.ok {
					t.Errorf("%s: held %t, %q", c.Rule, c.OK, c.Faults)
				}
			}
		})
	}
}
