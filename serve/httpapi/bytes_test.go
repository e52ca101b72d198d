package httpapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// O01, O09: where bytes of a stream were replaced, a run's answer has them as they were,
// in base64 and with secrets masked; a list, and a run that wrote text, have none.
func TestRunBytes(t *testing.T) {
	const canary = "canary-7f3k2"
	for _, tt := range []struct {
		name, stdout, stderr string
		want                 map[string]string // as JSON has them
	}{
		{"text", "ünï\n", "careful\n", nil},
		{"bytes", "a\xff\x00b", "", map[string]string{"stdoutBase64": "Yf8AYg=="}},
		{"bytes beside text", "ok", "\xfe", map[string]string{"stdoutBase64": "b2s=", "stderrBase64": "/g=="}},
		{"bytes and a secret", "\xff" + canary, "", map[string]string{"stdoutBase64": "/1tzZWNyZXQgQVBJX1RPS0VOXQ=="}}, // [secret API_TOKEN]
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouseOver(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: executor.Exited(0), Stdout: []byte(tt.stdout), Stderr: []byte(tt.stderr)}, nil
			}))
			h.grant("acme")
			_, err := h.admin.SetPolicy(t.Context(), "test", "acme", func(p *gate.Policy) error {
				p.Environment, p.Secrets = map[string]string{"API_TOKEN": canary}, []string{"API_TOKEN"}
				return nil
			})
			h.must(err)
			bytes := func(r reply) {
				t.Helper()
				var told map[string]any
				h.must(json.Unmarshal(r.body, &told))
				for _, name := range []string{"stdoutBase64", "stderrBase64"} {
					if got, has := told[name]; has != (tt.want[name] != "") || has && got != tt.want[name] {
						t.Errorf("%s: %s is %v, want %q", r.what, name, got, tt.want[name])
					}
				}
				if told["replaced"] != nil != (tt.want != nil) || strings.Contains(string(r.body), canary) {
					t.Errorf("%s: %s", r.what, r.body)
				}
			}
			var run client.Run
			bytes(h.ask("operator", "POST", "/v1/runs", hello).into(200, &run))
			bytes(h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &run))
			if list := h.ask("reader", "GET", "/v1/runs", nil).into(200, nil); strings.Contains(string(list.body), "Base64") {
				t.Errorf("a list has bytes: %s", list.body)
			}
		})
	}
}
