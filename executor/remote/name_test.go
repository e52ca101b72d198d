package remote_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// M10: a ticket is bound to the runner that the host means: one that calls itself by
// another's name, or by none, is sent nothing.
func TestRunnerName(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ticket.NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, info string
		signer     *ticket.Signer
		sent       bool
	}{
		{"the runner's own", knows, signer, true},
		{"another's", strings.Replace(knows, "runner-1", "runner-good", 1), signer, false},
		{"another's, without tickets", strings.Replace(knows, "runner-1", "runner-good", 1), nil, false},
		{"none", strings.Replace(knows, "runner-1", "", 1), signer, false},
		{"no info", "", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, tt.info, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				run, err := wire.ReadRun(bytes.NewReader(b), 0)
				if err != nil || run.More == nil || run.More.Ticket == "" {
					t.Errorf("M10: the run has no ticket: %v", err)
					return
				}
				_, rest, _ := strings.Cut(run.More.Ticket, ".") // see package ticket
				payload, _, _ := strings.Cut(rest, ".")
				if text, err := base64.RawURLEncoding.DecodeString(payload); err != nil || !bytes.Contains(text, []byte("runner-1")) {
					t.Errorf("M10: the ticket is not for runner-1: %q, %v", text, err)
				}
				r.Body = io.NopCloser(bytes.NewReader(b))
				_, _ = w.Write(good(t, r, nil))
			})
			_, err := open(t, f.URL, func(c *remote.Config) { c.Signer, c.Runner = tt.signer, "runner-1" }).Execute(t.Context(), admit(t, nil))
			if tt.sent {
				if err != nil || f.runs.Load() != 1 {
					t.Errorf("got %v, asked %d times", err, f.runs.Load())
				}
				return
			}
			check(t, err, remote.Unsendable, false)
			if n := f.runs.Load(); n != 0 {
				t.Errorf("M10: the runner was asked %d times", n)
			}
		})
	}
	if e, err := remote.New(remote.Config{Address: "https://runner.example.org", Key: func() (string, error) { return testKey, nil }, Signer: signer}); err == nil {
		_ = e.Close()
		t.Error("M10: tickets for any runner are signed")
	}
}

// M02: an answer has no more bytes than the run may return, though the wire lets larger
// ones through.
func TestAnswerBound(t *testing.T) {
	f := newFake(t, knows, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(append(good(t, r, nil), bytes.Repeat([]byte(" "), wire.MaxSmall+1<<20)...))
	})
	_, err := open(t, f.URL, nil).Execute(t.Context(), admit(t, nil))
	check(t, err, remote.TooLarge, true)
}
