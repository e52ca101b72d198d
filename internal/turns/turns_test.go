package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// B10: a tenant that sends a flood holds half of the turns, so another gets one at
// once; one that leaves holds none; and who has none is forgotten.
func TestTurns(t *testing.T) {
	for _, tc := range []struct {
		name    string
		n       int
		tenants []string
		want    int32 // turns that are held while each tenant has 100 calls
	}{
		{"one tenant", 8, []string{"a"}, 4},
		{"two", 8, []string{"a", "b"}, 8},
		{"three", 8, []string{"a", "b", "c"}, 8},
		{"an odd number", 5, []string{"a"}, 2},
		{"one turn", 1, []string{"a", "b"}, 1},
		{"none is one", 0, []string{"a"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns, let := New(tc.n), make(chan struct{})
				var held, most atomic.Int32
				var wg sync.WaitGroup
				for _, tenant := range tc.tenants {
					for range 100 {
						wg.Go(func() {
							leave, err := turns.Take(t.Context(), tenant)
							if err != nil {
								t.Error(err)
								return
							}
							most.Store(max(most.Load(), held.Add(1)))
							<-let
							held.Add(-1)
							leave()
						})
					}
				}
				synctest.Wait()
				if n := held.Load(); n != tc.want {
					t.Errorf("%d turns are held, want %d", n, tc.want)
				}
				gone := errors.New("the caller has left")
				ctx, leave := context.WithCancelCause(t.Context())
				left := make(chan error)
				for _, tenant := range tc.tenants {
					go func() {
						_, err := turns.Take(ctx, tenant)
						left <- err
					}()
				}
				synctest.Wait()
				leave(gone)
				for range tc.tenants {
					if err := <-left; err != gone {
						t.Errorf("one who has left: got error %v", err)
					}
				}
				close(let)
				wg.Wait()
				if n := most.Load(); n > int32(max(tc.n, 1)) {
					t.Errorf("%d turns were held at once", n)
				}
				if len(turns.tenants) != 0 || len(turns.all) != 0 {
					t.Errorf("%d tenants and %d turns are left", len(turns.tenants), len(turns.all))
				}
			})
		})
	}
}

// B10: while one tenant's flood holds what it may, another takes a turn without a
// wait; and where two floods hold all, a third is next.
func TestAFloodDoesNotHoldOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(4)
		let := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
		var wg sync.WaitGroup
		flood := func(tenant string) {
			for range 400 {
				wg.Go(func() {
					if leave, err := turns.Take(t.Context(), tenant); err != nil {
						t.Error(err)
					} else {
						<-let[tenant]
						leave()
					}
				})
			}
			synctest.Wait()
		}
		flood("a")
		got := make(chan func())
		take := func() {
			leave, err := turns.Take(t.Context(), "c")
			if err != nil {
				t.Error(err)
			}
			got <- leave
		}
		go take()
		(<-got)() // a bubble in which everybody waits would end here
		flood("b")
		go take()
		synctest.Wait()
		let["a"] <- struct{}{} // one turn of the flood ends
		(<-got)()
		close(let["a"])
		close(let["b"])
		wg.Wait()
	})
}
