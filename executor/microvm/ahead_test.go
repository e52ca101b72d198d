//go:build linux && amd64

package microvm

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A maker counts the machines that it makes and those that are ended.
type maker struct {
	made, ended atomic.Int64
	fails       atomic.Bool
	takes       time.Duration // to make one
	busy        atomic.Bool
}

func (m *maker) ahead(most int, memory int64) *ahead {
	return &ahead{most: most, memory: memory, busy: m.busy.Load, raze: func(*vm) { m.ended.Add(1) }, make: func(size) (*vm, error) {
		time.Sleep(m.takes)
		if m.fails.Load() {
			return nil, errors.New("no")
		}
		m.made.Add(1)
		return &vm{}, nil
	}}
}

// B10, B3: a machine is made ahead for who called twice within a minute, is taken once, by
// its own tenant for the same, waits a minute, and none is left when all is closed.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maker{takes: time.Second}
		a := m.ahead(4, 1<<40)
		s := size{tenant: "a", memory: sizeStep}
		settle := func(made int64) {
			t.Helper()
			time.Sleep(2 * time.Second)
			if got := m.made.Load(); got != made {
				t.Fatalf("%d were made, want %d", got, made)
			}
		}
		a.want(s, time.Now())
		settle(0)
		time.Sleep(aheadTime)
		a.want(s, time.Now()) // too late to be a second
		settle(0)
		began := time.Now()
		time.Sleep(10 * aheadTime) // a run may take long
		a.want(s, began)
		settle(1)
		if a.take(size{tenant: "b", memory: sizeStep}) != nil || a.take(size{tenant: "a", memory: 2 * sizeStep}) != nil {
			t.Error("B3: a machine is another's")
		}
		if a.take(s) == nil || a.take(s) != nil || a.served != 1 {
			t.Error("a machine that waits is taken once")
		}
		a.want(s, time.Now())
		settle(2)
		time.Sleep(aheadTime)
		if a.take(s) != nil || m.ended.Load() != 1 {
			t.Errorf("%d were ended that waited for a minute, want 1", m.ended.Load())
		}
		m.fails.Store(true)
		a.want(s, time.Now())
		a.want(s, time.Now())
		settle(2)
		if a.take(s) != nil || len(a.wanted) != 0 {
			t.Error("what could not be made is wanted still")
		}
		m.fails.Store(false)
		a.want(s, time.Now())
		settle(3)
		a.want(s, time.Now()) // it is being made when all is closed
		a.close()
		a.want(s, time.Now())
		settle(m.made.Load())
		if made, ended := m.made.Load(), m.ended.Load(); made != ended+1 { // the one that was taken is the run's
			t.Errorf("B3: %d were made and %d ended", made, ended)
		}
	})
}

// B10: those that wait are bounded in number and in memory, for one tenant by half, and none
// is made where the processors are busy.
func TestAheadBounds(t *testing.T) {
	for _, c := range []struct {
		name    string
		most    int
		memory  int64
		busy    bool
		tenants []string
		made    int64
	}{
		{"one tenant", 4, 1 << 40, false, []string{"a", "a", "a", "a"}, 2},
		{"two tenants", 4, 1 << 40, false, []string{"a", "a", "a", "b", "b", "b"}, 4},
		{"one at most", 1, 1 << 40, false, []string{"a", "b"}, 1},
		{"memory for three", 8, 3 * size{memory: sizeStep}.takes(), false, []string{"a", "b", "c", "d"}, 3},
		{"memory for none", 8, sizeStep, false, []string{"a", "b"}, 0},
		{"none", -1, 1 << 40, false, []string{"a"}, 0},
		{"busy", 4, 1 << 40, true, []string{"a"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &maker{takes: time.Millisecond}
				m.busy.Store(c.busy)
				a := m.ahead(c.most, c.memory)
				for _, tenant := range c.tenants {
					a.want(size{tenant: tenant, memory: sizeStep}, time.Now())
				}
				for _, tenant := range c.tenants {
					a.want(size{tenant: tenant, memory: sizeStep}, time.Now())
				}
				time.Sleep(time.Second)
				if got := m.made.Load(); got != c.made {
					t.Errorf("B10: %d were made, want %d", got, c.made)
				}
				a.close()
				if m.ended.Load() != c.made {
					t.Errorf("B3: %d of %d were ended", m.ended.Load(), c.made)
				}
			})
		})
	}
}
