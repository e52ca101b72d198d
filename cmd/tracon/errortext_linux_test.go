package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// R26, case 62: an executor's error has a path of its host and a secret in its text.
// Neither reaches the model, the answer of the API, the run's events, what a tenant's
// operator reads of the call, the log, nor anything else that is kept; the operator of
// the host finds both in the server's own log. That holds of a run that may have been
// started and of one that was not, which go other ways.
func TestExecutorsErrorText(t *testing.T) {
	const host, secret = "/srv/kanari-host/runner.sock", "kanari-secret-u7w3"
	for _, tt := range []struct {
		name       string
		notStarted bool
		code       string
	}{
		{"it may have run", false, "unknown"},
		{"it was not started", true, "executor_unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			about := wire.Info{Name: "elsewhere", Protocols: []string{wire.Protocol}, Executor: "process", Tier: string(grant.Process), MaxInline: wire.MaxInline,
				Runtimes: []wire.Runtime{{Name: "sh", Extension: "sh"}}}
			elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var answer any = about
				if r.Method == http.MethodPost {
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusInternalServerError)
					answer = wire.Problem{Status: http.StatusInternalServerError, Code: "internal", NotStarted: tt.notStarted, Detail: "open " + host + ": the token " + secret + " was refused"}
				}
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			}))
			defer elsewhere.Close()
			s := newServed(t, map[string]string{"TRACON_EXECUTOR": "remote", "TRACON_REMOTE": elsewhere.URL, "TRACON_REMOTE_REACH": "loopback", "TRACON_TRUST_CLAIMED": "true"}).start()
			s.setUpBy("runtime:sh", "acme", "echo there\n")
			key := s.key("acme", "bot", "operator")
			seen := map[string]string{}
			found := func(words ...string) string {
				t.Helper()
				out, err := s.command(append([]string{"--tenant", "acme"}, words...)...).CombinedOutput()
				if err != nil {
					t.Errorf("%v: %v: %s", words, err, out)
				}
				return string(out)
			}

			// By the API, and what is told of the run afterwards.
			asks := func(method, path, body string) []byte {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, s.Address+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+key)
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				text, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				seen[method+" "+path] = fmt.Sprintf("%v %s", answer.Header, text)
				return text
			}
			var run struct{ ID, Run, Code string } // of a run, or of a problem
			text := asks("POST", "/v1/runs", `{"skill":"s","script":"s.sh"}`)
			if err := json.Unmarshal(text, &run); err != nil || run.Code != tt.code {
				t.Fatalf("%v: the answer is %s, want the code %q", err, text, tt.code)
			}
			id := cmp.Or(run.ID, run.Run)
			for _, path := range []string{"/v1/runs/" + id, "/v1/runs/" + id + "/events", "/v1/calls/" + id, "/v1/runs", "/v1/calls", "/v1/audit/entries"} {
				if text := asks("GET", path, ""); !strings.Contains(string(text), id) {
					t.Errorf("%s tells nothing of the run: %s", path, text)
				}
			}

			// By the endpoint for models.
			_, said := s.model(key).ask("tools/call", map[string]any{"name": "run_skill_script", "arguments": map[string]any{"skill": "s", "script": "s.sh"}})
			seen["the model"] = fmt.Sprint(said)
			if !strings.Contains(seen["the model"], tt.code) {
				t.Errorf("the model is told %s, want %q", said, tt.code)
			}

			// By the verbs of the host's own operator.
			for _, words := range [][]string{{"calls", "show", id}, {"calls", "show", id, "--json"}, {"calls", "list", "--json"}, {"audit", "list", "--json"}} {
				seen[strings.Join(words, " ")] = found(words...)
			}
			if !strings.Contains(seen["calls show "+id+" --json"], tt.code) {
				t.Errorf("the record is %s, want the ending %q", seen["calls show "+id+" --json"], tt.code)
			}
			for _, want := range []string{host, secret} {
				s.said(want)
			}

			// By what is kept.
			s.signal(syscall.SIGTERM)
			if code := s.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			kept := false
			err := filepath.WalkDir(s.folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				text, err := os.ReadFile(path)
				seen[path] = string(text)
				kept = kept || strings.Contains(string(text), id)
				return err
			})
			if err != nil || !kept {
				t.Errorf("the files: %v; one of them has the run: %v", err, kept)
			}
			for where, text := range seen {
				for _, not := range []string{host, "kanari-host", secret} {
					if has(text, not) {
						t.Errorf("%s has %s", where, not)
					}
				}
			}
		})
	}
}
