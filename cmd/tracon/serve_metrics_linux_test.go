package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The listener of its own for metrics takes no key; its answers have an id of ours, by
// which the log has a line for each, also where nothing is there.
func TestServeMetricsListener(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_METRICS_LISTEN": "127.0.0.1:0"}).start()
	seen := map[string]bool{}
	for _, tt := range []struct {
		path, operation string
		status          int
	}{{"/metrics", "metrics", 200}, {"/metrics", "metrics", 200}, {"/v1/whoami", "", 404}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.Metrics, "/metrics")+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Tracon-Request-Id", "X-Request-Id"} {
			r.Header.Set(name, "forged")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		id := answer.Header.Get("Tracon-Request-Id")
		if err != nil || answer.StatusCode != tt.status || id == "" || seen[id] || (tt.status == 200) != strings.Contains(string(text), "# TYPE") {
			t.Errorf("%s: %d, the id %q, %v: %.200s", tt.path, answer.StatusCode, id, err, text)
			continue
		}
		seen[id] = true
		var line struct {
			Msg, Request, Method, Operation string
			Status                          int
		}
		if err := json.Unmarshal([]byte(s.said(`"request":"`+id+`"`)), &line); err != nil || line.Msg != "request" || line.Request != id || line.Method != "GET" ||
			line.Operation != tt.operation || line.Status != tt.status {
			t.Errorf("%s: the log says %+v, %v", tt.path, line, err)
		}
	}
	if text := strings.Join(s.lines(), "\n"); strings.Contains(text, "forged") {
		t.Error("the log has an id that a client chose")
	}
}
