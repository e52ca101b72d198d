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
)

// A runner that says yes to everything, and runs nothing, is found out rule by rule,
// each with the rule's words first; so is one that says no to everything.
func TestBadRunners(t *testing.T) {
	for name, status := range map[string]int{"always yes": 200, "always no": 500} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/info" {
				_, _ = io.WriteString(w, `{"name":"bad","protocols":["tracon/1"],"tier":"sandbox","limits":{"timeoutSeconds":1}}`)
				return
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"exitCode":0,"standardOutput":"","standardError":""}`)
		}))
		told := 0
		r := Runner{Address: s.URL, Key: "k", Tenant: "t", Runtimes: map[string]string{"sh": "sh"}, Over: func(Check) { told++ }}
		checks, err := r.Run(t.Context())
		s.Close()
		if err != nil || told != len(checks) || len(checks) != len(plainRules)+len(ourRules) || r.Info.Name != "bad" {
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
	r = Runner{Address: s.URL, Tenant: "t", Runtimes: map[string]string{"sh": "sh"}, Over: func(Check) { cancel(enough) }}
	if checks, err := r.Run(ctx); !errors.Is(err, enough) || len(checks) != 1 {
		t.Errorf("given up: %d checks, %v", len(checks), err)
	}
}
