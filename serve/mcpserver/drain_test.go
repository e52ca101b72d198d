package mcpserver

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// The end of the input comes when every request was answered or taken back, and not
// before; what nobody can read is not waited for.
func TestDrain(t *testing.T) {
	for name, tc := range map[string]struct{ in, out string }{
		"nothing":      {"", ""},
		"answered":     {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","id":"x","method":"b"}`, `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":1,"error":{}}` + "\n"},
		"taken back":   {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n", ""},
		"notification": {`{"jsonrpc":"2.0","method":"n"}` + "\n", ""},
		"listening":    {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}` + "\n", ""},
		"no JSON":      {`{"jsonrpc":"2.0","id":1,"method":` + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDrain(t.Context())
				w := &linesOut{WriteCloser: discard{}, d: d}
				r := newLinesIn(io.NopCloser(strings.NewReader(tc.in)), w, d, maxLine)
				ended := false
				go func() { _, _ = io.Copy(io.Discard, r); ended = true }()
				synctest.Wait()
				if ended != (tc.out == "") {
					t.Fatalf("ended %v before it was answered", ended)
				}
				for _, b := range []byte(tc.out) { // in the smallest pieces
					_, _ = w.Write([]byte{b})
				}
				synctest.Wait()
				if !ended {
					t.Error("the input has no end")
				}
			})
		})
	}
}

// Who stops the server waits for no answer.
func TestDrainStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		d := newDrain(ctx)
		r := newLinesIn(io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"a"}`)), &linesOut{WriteCloser: discard{}, d: d}, d, maxLine)
		go func() { synctest.Wait(); stop() }()
		_, _ = io.Copy(io.Discard, r)
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
