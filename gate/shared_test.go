package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tracon-go/tracon/bundle"
)

// slowContents reads when it is let.
type slowContents struct {
	Contents
	busy, most atomic.Int32
	let        chan struct{}
}

func (s *slowContents) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	s.most.Store(max(s.most.Load(), s.busy.Add(1)))
	defer s.busy.Add(-1)
	<-s.let
	return bundle.New([]bundle.File{{Path: "a.py", Data: []byte("pass\n")}}, nil, bundle.Limits{})
}

// B10: however many calls come at once, few contents are read at once, half of them
// for one tenant at most, equal ones are kept once, and a caller who leaves waits no longer for a turn.
func TestContentsAreReadInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowContents{let: make(chan struct{})}
		s := share(slow)
		read := make([]bundle.Bundle, 100)
		var wg sync.WaitGroup
		come := func(i int, tenant string) {
			wg.Go(func() {
				var err error
				if read[i], err = s.Read(t.Context(), tenant, "s", bundle.Limits{}); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 60 {
			come(i, "t")
		}
		synctest.Wait()
		if n := slow.busy.Load(); n != readers/2 {
			t.Errorf("%d contents are being read for one tenant, want %d", n, readers/2)
		}
		for i := range 40 {
			come(60+i, "u")
		}
		synctest.Wait()
		if n := slow.busy.Load(); n != readers {
			t.Errorf("%d contents are being read, want %d", n, readers)
		}
		left, gone := context.WithCancelCause(t.Context())
		gone(errors.New("the caller has left"))
		if _, err := s.Read(left, "t", "s", bundle.Limits{}); err != context.Cause(left) {
			t.Errorf("one who has left: got error %v", err)
		}
		close(slow.let)
		wg.Wait()
		for _, b := range read {
			if b != read[0] || b.IsZero() {
				t.Fatal("equal contents are kept twice")
			}
		}
		if n := slow.most.Load(); n != readers {
			t.Errorf("%d contents were read at once, want %d", n, readers)
		}
	})
}
