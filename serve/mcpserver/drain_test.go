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
		"answered":     {`{"id":1,"method":"a"}` + "\n" + `{"id":"x","method":"b"}`, `{"id":"x","result":{}}` + "\n" + `{"id":1,"error":{}}` + "\n"},
		"batch":        {`[{"id":1,"method":"a"},{"method":"n"}]` + "\n", `[{"id":1,"result":{}}]` + "\n"},
		"taken back":   {`{"id":1,"method":"a"}` + "\n" + `{"method":"notifications/cancelled","params":{"requestId":1}}` + "\n", ""},
		"notification": {`{"method":"n"}` + "\n", ""},
		"no JSON":      {`{"id":1,"method":` + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDrain(t.Context())
				r := &drainedReader{ReadCloser: io.NopCloser(strings.NewReader(tc.in)), d: d}
				ended := false
				go func() { _, _ = io.Copy(io.Discard, r); ended = true }()
				synctest.Wait()
				if ended != (tc.out == "") {
					t.Fatalf("ended %v before it was answered", ended)
				}
				w := &drainedWriter{WriteCloser: discard{}, d: d}
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
		r := &drainedReader{ReadCloser: io.NopCloser(strings.NewReader(`{"id":1,"method":"a"}`)), d: newDrain(ctx)}
		go func() { synctest.Wait(); stop() }()
		_, _ = io.Copy(io.Discard, r)
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
