package tracon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

const canary = "canary-7f3k2"

// secretive opens the tenant a with a secret, and room for max bytes of a stream.
func secretive(t *testing.T, h house, max int) {
	t.Helper()
	h.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}, Timeout: 10 * time.Second, MaxOutput: max, KeepArguments: true,
		Environment: map[string]string{"API_TOKEN": canary, "PLAIN": "not-secret"}, Secrets: []string{"API_TOKEN"}})
}

// O09: a secret that a script writes stands in no stream, no live output, no note, no
// error, no record and no entry of the log.
func TestSecretsAreMasked(t *testing.T) {
	key := access.NewSecret().Reveal()
	var logged bytes.Buffer
	fails := false
	h := newHouse(t, executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
		if got := req.Environment()["API_TOKEN"]; got != canary {
			t.Errorf("the script's environment has %q", got)
		}
		for _, piece := range []string{"x", canary[:5], canary[5:] + " " + key[:30], key[30:] + "\n"} {
			req.Live().Send(gate.Stdout, []byte(piece))
		}
		if fails {
			return executor.Result{}, errors.New("it said " + canary)
		}
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte("x" + canary + " not-secret\n"), Stderr: []byte("\xff" + canary + key),
			Notes: []string{"it wants " + canary}}, nil
	}), func(c *tracon.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	secretive(t, h, 4096)
	c := call("a")
	c.Live = gate.NewLive(0)
	c.Arguments = json.RawMessage(`["` + canary + `"]`)
	out, err := h.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.Stdout != "x[secret API_TOKEN] not-secret\n" || out.Stderr != "\uFFFD[secret API_TOKEN][tracon key]" {
		t.Errorf("stdout %q, stderr %q", out.Stdout, out.Stderr)
	}
	if string(out.StderrBytes) != "\xff[secret API_TOKEN][tracon key]" { // O01
		t.Errorf("the bytes of stderr are %q", out.StderrBytes)
	}
	if fmt.Sprint(out.Notes) != "[it wants [secret API_TOKEN]]" {
		t.Errorf("the notes are %q", out.Notes)
	}
	var live []byte
	for chunk := range c.Live.Chunks() {
		live = append(live, chunk.Data...)
	}
	if string(live) != "x[secret API_TOKEN] [tracon key]\n" {
		t.Errorf("live output is %q", live)
	}
	rec, err := h.st.Call(t.Context(), "a", out.ID)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Arguments != `["[secret API_TOKEN]"]` || strings.Contains(fmt.Sprint(rec.Notes), canary) {
		t.Errorf("the record has %q and %q", rec.Arguments, rec.Notes)
	}

	fails = true
	if _, err := h.Run(t.Context(), call("a")); tracon.Code(tracon.Outcome{}, err) != "executor_failed" || strings.Contains(err.Error(), canary) {
		t.Errorf("the failure is %v", err)
	}
	for leaf, err := range h.log.Entries(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(leaf.Bytes, []byte(canary)) {
			t.Errorf("an entry has it: %s", leaf.Bytes)
		}
	}
	if !strings.Contains(logged.String(), "[secret API_TOKEN]") || strings.Contains(logged.String(), canary) {
		t.Errorf("the operator's log has %s", logged.String())
	}
}

// O09, R25: a secret is masked before the output is cut, and where an executor cut within
// one, its beginning is masked; no limit is passed by what stands in its place.
func TestSecretsAreMaskedBeforeTheCut(t *testing.T) {
	for _, tt := range []struct {
		name, stdout string
		truncated    bool
		want         string
		cut          bool
	}{
		{"whole, and longer when masked", "0123456789" + canary, false, "0123456789[secret A", true},
		{"cut by the host", "0123456789ab" + canary + "more", false, "0123456789ab[secret", true},
		{"cut by the executor within it", "0123" + canary[:9], true, "0123[secret API_TOK", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: executor.Exited(0), Stdout: []byte(tt.stdout), Truncated: tt.truncated}, nil
			}), nil)
			secretive(t, h, 19)
			out, err := h.Run(t.Context(), call("a"))
			if err != nil || out.Stdout != tt.want || out.Truncated != tt.cut {
				t.Errorf("stdout is %q, truncated %v, %v; want %q", out.Stdout, out.Truncated, err, tt.want)
			}
		})
	}
}

// O01: the bytes are there where some were replaced, within the policy's limit, and only
// there.
func TestBytesAsTheyWere(t *testing.T) {
	for _, tt := range []struct{ name, stdout, want string }{
		{"text", "ünï", ""},
		{"bytes", "a\xff\x00b", "a\xff\x00b"},
		{"more than the limit", strings.Repeat("\xfe", 30), strings.Repeat("\xfe", 19)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: executor.Exited(0), Stdout: []byte(tt.stdout)}, nil
			}), nil)
			secretive(t, h, 19)
			out, err := h.Run(t.Context(), call("a"))
			if err != nil || string(out.StdoutBytes) != tt.want || out.Replaced != (tt.want != "") {
				t.Errorf("bytes %q, replaced %v, %v; want %q", out.StdoutBytes, out.Replaced, err, tt.want)
			}
		})
	}
}

// O09: a secret that a gap in the output parts (bytes that were lost on their way from
// another host) is not shown either, neither its beginning nor its end, on either stream.
func TestSecretsAcrossAGap(t *testing.T) {
	whole := access.NewSecret().Reveal()
	for _, secret := range []string{canary, whole} {
		for from := 4; from < len(secret); from += 5 {
			for gap := 1; from+gap <= len(secret); gap += 4 {
				h := newHouse(t, executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
					l := req.Live()
					for _, s := range []gate.Stream{gate.Stdout, gate.Stderr} {
						l.Send(s, []byte("before "+secret[:from]))
					}
					l.Lost(gate.Stdout, int64(gap))
					for _, s := range []gate.Stream{gate.Stdout, gate.Stderr} {
						l.Send(s, []byte(secret[from+gap:]+"\n"))
						l.Send(s, []byte(strings.Repeat(".", 100)+" after "+secret+"\n"))
					}
					return executor.Result{Ending: executor.Exited(0)}, nil
				}), nil)
				secretive(t, h, 4096)
				c := call("a")
				c.Live = gate.NewLive(0)
				if _, err := h.Run(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				shown := map[gate.Stream]string{}
				all := 0
				for chunk := range c.Live.Chunks() {
					shown[chunk.Stream] += string(chunk.Data)
				}
				for stream, text := range shown {
					all += len(text)
					text = strings.NewReplacer("[tracon key]", "[]", "[secret API_TOKEN]", "[]").Replace(text)
					for i := range len(secret) - 4 {
						if strings.Contains(text, secret[i:i+4]) {
							t.Fatalf("parted at %d by %d bytes, stream %d shows %q", from, gap, stream, text)
						}
					}
					if !strings.HasPrefix(text, "before ") || !strings.Contains(text, " after [") {
						t.Fatalf("parted at %d by %d bytes, stream %d shows %q", from, gap, stream, text)
					}
				}
				if all == 0 || c.Live.Dropped() <= int64(gap) {
					t.Errorf("%d bytes are shown and %d dropped", all, c.Live.Dropped())
				}
			}
		}
	}
}
