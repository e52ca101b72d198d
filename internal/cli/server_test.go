package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// watched is what a terminal shows. Seen is called with all of it, at each write.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen func(string)
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if w.seen != nil {
		w.seen(w.text.String())
	}
	return len(b), nil
}

// A server of another version of the API is told, and nothing more is asked of it.
func TestOtherVersion(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/version" {
			t.Errorf("it was asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"version":"v0.9.0","api":"0"}`)
	}))
	defer s.Close()
	out := new(watched)
	env := map[string]string{"TRACON_SERVER": s.URL, "TRACON_KEY": "tracon_x"}
	a := &app{in: strings.NewReader(""), out: io.Discard, err: out, getenv: func(k string) string { return env[k] }}
	if code := a.main(t.Context(), []string{"run", "s", "s.sh"}); code != exitTracon {
		t.Errorf("exit code %d, want %d", code, exitTracon)
	}
	for _, want := range []string{"v0.9.0", `"0"`, "version 1", "as old or as new"} {
		if !strings.Contains(out.text.String(), want) {
			t.Errorf("it does not say %q: %s", want, out.text.String())
		}
	}
}

// What the API refuses is the error that the same mistake has on this machine; what it
// says of itself stays as it is, with what to do.
func TestTold(t *testing.T) {
	missing := errors.New("there is none")
	tests := []struct {
		name    string
		problem *client.Problem
		is      error
		holds   string
	}{
		{"not there", client.NewProblem(client.NotFound, "x"), missing, ""},
		{"changed", client.NewProblem(client.ContentChanged, "x"), admin.ErrChanged, ""},
		{"pinned", client.NewProblem(client.ContentPinned, "x"), admin.ErrPinned, ""},
		{"listed", client.NewProblem(client.InUse, "x"), admin.ErrListed, ""},
		{"conflict", client.NewProblem(client.Conflict, "somebody came first"), grant.ErrConflict, "somebody came first"},
		{"content", client.NewProblem(client.BadContent, "a link"), bundle.ErrContent, "a link"},
		{"busy", client.NewProblem(client.Busy, "later"), tracon.ErrBusy, "later"},
		{"the log", client.NewProblem(client.AuditUnavailable, "x"), audit.ErrUnavailable, ""},
		{"not allowed", client.NewProblem(client.Forbidden, "access: not allowed: it takes grants.write"), access.ErrDenied, "it takes grants.write"},
		{"no key", client.NewProblem(client.Unauthenticated, "x"), nil, "TRACON_KEY"},
		{"too many", &client.Problem{Code: client.RateLimited, Detail: "x", RetryAfter: 7 * time.Second}, nil, "try again in 7s"},
		{"of the server", &client.Problem{Code: client.Internal, Status: 500, Detail: "x", RequestID: "r1"}, nil, "the request r1"},
		{"a code that is new", &client.Problem{Code: "moon", Status: 418, Detail: "a teapot"}, nil, "a teapot"},
	}
	r := &remote{server: "https://tracon.example.org"}
	for _, tt := range tests {
		err := r.told(t.Context(), tt.problem, missing)
		said := err.Error()
		if h, ok := errors.AsType[*hintError](err); ok {
			said += " " + h.hint
		}
		if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(said, tt.holds) {
			t.Errorf("%s: %q, want %v and %q", tt.name, said, tt.is, tt.holds)
		}
	}
	if err := r.told(t.Context(), nil, missing); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// What comes of a run on a server has the codes and the exit codes of one on this
// machine.
func TestRunOnAServer(t *testing.T) {
	zero, nine := 0, 9
	tests := []struct {
		name string
		run  client.Run
		code string
		exit int
	}{
		{"exited", client.Run{Ending: "exited", ExitCode: &zero}, "", 0},
		{"killed", client.Run{Ending: "signaled", Signal: &nine}, "", 137},
		{"timed out", client.Run{Ending: "timed_out", Code: "timed_out"}, "timed_out", 124},
		{"memory", client.Run{Ending: "out_of_memory", Code: "out_of_memory"}, "out_of_memory", 125},
		{"flood", client.Run{Ending: "output_flood", Code: "output_flood"}, "output_flood", 125},
		{"violation", client.Run{Ending: "policy_violation", Code: "policy_violation"}, "policy_violation", 125},
		{"cancelled", client.Run{Ending: "cancelled", Code: "cancelled", CancelledBy: "somebody"}, "cancelled", 125},
		{"executor", client.Run{Ending: "executor_failed", Code: "executor_failed"}, "executor_failed", 125},
		{"a gate, after the wait", client.Run{Ending: "grant", Code: "grant", Text: "no"}, "grant", 126},
		{"nobody knows", client.Run{Ending: "unknown", Code: "unknown"}, "unknown", 125},
		{"no ending at all", client.Run{}, "unknown", 125},
	}
	for _, tt := range tests {
		out, err := new(remote).ofRun(tt.run)
		if code, exit := tracon.Code(out.Outcome, err), runExit(out.Outcome, err); code != tt.code || exit != tt.exit {
			t.Errorf("%s: code %q and exit code %d, want %q and %d", tt.name, code, exit, tt.code, tt.exit)
		}
	}
	b, err := json.Marshal(toOutcomeJSON(gate.Call{Skill: "s", Script: "s.sh"}, ended{out: ran{model: "Told.", audit: &auditJSON{Index: 7}}, err: tracon.ErrCancelled}))
	if err != nil || !strings.Contains(string(b), `"model":"Told."`) || !strings.Contains(string(b), `"index":7`) {
		t.Errorf("as JSON: %s, %v", b, err)
	}
}
