package runs_test

import (
	"errors"
	"testing"

	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
)

// B10: a body that is announced takes no room before it comes; as it comes it takes room
// in steps, and leaves some to calls that are small.
func TestBodies(t *testing.T) {
	const announced, each = 52 << 20, 32 << 20
	h := newHouse(t, prints(""), runs.Limits{CallBytes: 64 << 20, CallBytesPerTenant: each})
	left := func(want int64) {
		t.Helper()
		free, err := h.Hold("acme", want)
		if err != nil {
			t.Fatalf("there are no %d bytes left: %v", want, err)
		}
		defer free()
		if _, err := h.Hold("acme", 1); !errors.Is(err, slot.ErrBusy) {
			t.Errorf("beside %d bytes: %v, want busy", want, err)
		}
	}
	var bodies []*runs.Body
	for range 1000 {
		bodies = append(bodies, h.Body("acme", announced))
	}
	left(each)
	for i, b := range bodies[:200] { // what has begun holds little
		if _, err := b.Write([]byte("{")); err != nil {
			t.Fatalf("the body %d: %v", i, err)
		}
	}
	left(each - 200*16<<10)
	large := h.Body("acme", announced)
	var err error
	for err == nil {
		_, err = large.Write(make([]byte, 8<<10))
	}
	if n := len(large.Bytes()); !errors.Is(large.Full(), slot.ErrBusy) || n < 24<<20 || n > 28<<20 {
		t.Errorf("a body without an end: %v, after %d bytes", large.Full(), n)
	}
	small := h.Body("acme", 100)
	if _, err := small.Write(make([]byte, 100)); err != nil || small.Full() != nil || len(small.Bytes()) != 100 {
		t.Errorf("a small call beside it: %v", err)
	}
	for range 2 {
		for _, b := range append(bodies, large, small) {
			b.Release()
		}
	}
	left(each)
}
