package tracon_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
)

// B7: the outcome of each call that was admitted names it, what it was to run, and
// its admission, of one whose caller has left too; and it has the record's times.
func TestOutcomeOfAnAdmittedCall(t *testing.T) {
	for _, tt := range []struct {
		name  string
		leave time.Duration // zero: the caller stays
		err   error
		ended bool
	}{
		{name: "it ran", ended: true},
		{name: "its caller leaves", leave: time.Second, err: tracon.ErrCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, deaf(8*time.Second+999), nil)
				ctx := t.Context()
				if tt.leave > 0 {
					left, cancel := context.WithTimeout(ctx, tt.leave)
					defer cancel()
					ctx = left
				}
				out, err := h.Run(ctx, call("a"))
				if !errors.Is(err, tt.err) {
					t.Fatalf("got %v, want %v", err, tt.err)
				}
				if out.ID == "" || out.Digest.IsZero() || out.GrantID == "" || out.Standing.Executor == "" || !out.Receipt.Valid() {
					t.Errorf("it does not say what was admitted: %+v", out)
				}
				if at := out.Admitted; at.IsZero() || !at.Equal(at.Truncate(time.Microsecond)) || out.Duration%time.Microsecond != 0 {
					t.Errorf("admitted at %v, took %v: want whole microseconds", at, out.Duration)
				}
				if out.Ended.IsZero() == tt.ended {
					t.Errorf("ended at %v", out.Ended)
				}
				time.Sleep(time.Minute) // until the executor has answered too
			})
		})
	}
}
