package mcpserver

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// The end of the input comes when every request was answered or taken back, and not
// before, however their ids are written; what nobody can read is not waited for (B10).
func TestDrain(t *testing.T) {
	for name, tc := range map[string]struct{ in, out string }{
		"nothing":            {"", ""},
		"answered":           {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","id":"x","method":"b"}`, `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":1,"error":{}}` + "\n"},
		"taken back":         {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n", ""},
		"notification":       {`{"jsonrpc":"2.0","method":"n"}` + "\n", ""},
		"listening":          {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}` + "\n", ""},
		"an empty method":    {`{"jsonrpc":"2.0","id":1,"method":""}` + "\n", `{"jsonrpc":"2.0","id":1,"error":{}}` + "\n"},
		"the id 2.0":         {`{"jsonrpc":"2.0","id":2.0,"method":"a"}` + "\n", `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n"},
		"the id 1e2":         {`{"jsonrpc":"2.0","id":1e2,"method":"a"}` + "\n", `{"jsonrpc":"2.0","id":100,"result":{}}` + "\n"},
		"the id a, escaped":  {`{"jsonrpc":"2.0","id":"\u0061","method":"a"}` + "\n", `{"jsonrpc":"2.0","id":"a","result":{}}` + "\n"},
		"the id <":           {`{"jsonrpc":"2.0","id":"<","method":"a"}` + "\n", `{"jsonrpc":"2.0","id":"\u003c","result":{}}` + "\n"},
		"the id 2.5":         {`{"jsonrpc":"2.0","id":2.5,"method":"a"}` + "\n", ""},
		"the id 1e300":       {`{"jsonrpc":"2.0","id":1e300,"method":"a"}` + "\n", ""},
		"the id null":        {`{"jsonrpc":"2.0","id":null,"method":"a"}` + "\n", ""},
		"Id is no id":        {`{"jsonrpc":"2.0","Id":2,"method":"a"}` + "\n", ""},
		"taken back, as 1.0": {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}` + "\n", ""},
		"not taken back":     {`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"RequestId":1}}` + "\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		"no JSON":            {`{"jsonrpc":"2.0","id":1,"method":` + "\n", ""},
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
