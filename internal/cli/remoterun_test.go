package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// over carries requests to a handler without a network, so that time is the bubble's.
type over struct{ http.Handler }

func (o over) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w.Result(), nil
}

// B10: what a server left out of its answer, because many large ones are under way, is got
// by itself as soon as there is a place; where there is none in time, what is told names
// the run, which has happened.
func TestRunThatCameInParts(t *testing.T) {
	for _, tt := range []struct {
		name string
		busy int // answers to each part, before there is a place
		ok   bool
	}{{"at once", 0, true}, {"later", 3, true}, {"never", 1000, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := map[string]int{}
				parts := map[string]string{"output": "of the file", "stdout": "printed"}
				mux := http.NewServeMux()
				mux.HandleFunc("POST /v1/runs", func(w http.ResponseWriter, r *http.Request) {
					zero := 0
					_ = json.NewEncoder(w).Encode(client.Run{ID: "r1", State: client.RunEnded, Ending: "exited", ExitCode: &zero, OutputLeftOut: true,
						StdoutBytes: 7, OutputFiles: 2, Outputs: []client.Output{{Path: "a", Size: 11}, {Path: "empty"}}})
				})
				mux.HandleFunc("GET /v1/runs/r1/{part}", func(w http.ResponseWriter, r *http.Request) {
					part := r.PathValue("part")
					if asked[part]++; asked[part] > tt.busy {
						_, _ = io.WriteString(w, parts[part])
						return
					}
					w.Header().Set("Content-Type", "application/problem+json")
					w.Header().Set("Retry-After", "2")
					w.WriteHeader(client.Busy.Status())
					_ = json.NewEncoder(w).Encode(client.NewProblem(client.Busy, "later"))
				})
				c, err := client.New(client.Config{Server: "http://127.0.0.1:1", Transport: over{mux}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				out, err := (&remote{server: "http://127.0.0.1:1", c: c}).Run(t.Context(), gate.Call{Skill: "s", Script: "s.sh"})
				if !tt.ok {
					if err == nil || out.ID != "r1" || time.Since(began) > 2*placeTime {
						t.Errorf("after %v: the run %q, %v; want an error that names it", time.Since(began), out.ID, err)
					}
					return
				}
				if err != nil || out.Stdout != "printed" || out.Stderr != "" || len(out.Outputs) != 2 || string(out.Outputs[0].Data) != "of the file" || len(out.Outputs[1].Data) != 0 {
					t.Errorf("%+v, %v", out.Outcome, err)
				}
				if want := time.Duration(tt.busy) * 4 * time.Second; time.Since(began) != want || len(asked) != 2 {
					t.Errorf("it took %v, want %v; asked for %v", time.Since(began), want, asked)
				}
			})
		})
	}
}
