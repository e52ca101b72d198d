package cli

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// R21, B8: "unknown" means that a script may have run, and says where to look. What
// never started has a code of its own.
func TestWhatNeverStartedIsNotUnknown(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		name   string
		err    error
		code   string
		remedy string
	}{
		{"the server was killed meanwhile", io.EOF, "unknown", "tracon calls list"},
		{"the connection broke meanwhile", &net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}, "unknown", "tracon calls list"},
		{"no longer followed", &begun{"r1", "the run r1 could not be stopped"}, "unknown", "tracon calls show r1"},
		{"nobody listens", refused, "unavailable", "tracon serve"},
		{"the key may not", client.NewProblem(client.Forbidden, "it takes runs.start"), "forbidden", "role"},
		{"too many requests", client.NewProblem(client.RateLimited, ""), "rate_limited", "try again"},
		{"a gate said no", client.NewProblem(client.RefusedGrant, "no grant"), "grant", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := (&remote{server: "s", tenant: "acme"}).notRun(t.Context(), tt.err)
			j := toOutcomeJSON(gate.Call{}, ended{out: out, err: err})
			if j.Code != tt.code || j.Error.Code != tt.code || !strings.Contains(j.Error.Remedy, tt.remedy) {
				t.Errorf("got code %q, error %+v; want %q and %q", j.Code, j.Error, tt.code, tt.remedy)
			}
		})
	}
}
