//go:build linux && amd64

package microvm

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// A maker counts the machines that it makes and those that are ended.
type maker struct {
	made, ended atomic.Int64
	fails       atomic.Bool
	takes       time.Duration // to make one
	busy        atomic.Bool
}

func (m *maker) ahead(most int, memory int64) *ahead {
	return &ahead{most: most, memory: memory, lasts: aheadTime, busy: m.busy.Load, raze: func(*vm) { m.ended.Add(1) }, make: func(size) (*vm, error) {
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
		other := s
		other.waits = "another interpreter"
		if other.loaded = "another runtime's"; a.take(other) != nil {
			t.Error("a machine is taken that has another interpreter in memory")
		}
		if other.loaded = s.loaded; a.take(other) == nil || a.take(other) != nil {
			t.Error("a machine is taken once by who needs its interpreter otherwise")
		}
		a.want(s, time.Now())
		settle(3)
		time.Sleep(aheadTime)
		if a.take(s) != nil || m.ended.Load() != 1 {
			t.Errorf("%d were ended that waited for a minute, want 1", m.ended.Load())
		}
		m.fails.Store(true)
		a.want(s, time.Now())
		a.want(s, time.Now())
		settle(3)
		if a.take(s) != nil || len(a.wanted) != 0 {
			t.Error("what could not be made is wanted still")
		}
		m.fails.Store(false)
		a.want(s, time.Now())
		settle(4)
		a.want(s, time.Now()) // it is being made when all is closed
		a.close()
		a.want(s, time.Now())
		settle(m.made.Load())
		if made, ended := m.made.Load(), m.ended.Load(); made != ended+2 { // those that were taken are the runs'
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

// R16: a machine that is saved knows nothing of a policy, and one that is made ahead
// nothing of the variables that a policy adds: an interpreter waits for scripts that have
// none, that are files, and that are Python's or Node.js's.
func TestExpect(t *testing.T) {
	fixed := []string{"HOME=/tmp/home"}
	orders := func(change func(*frame.Orders)) frame.Orders {
		o := frame.Orders{Plain: true, Interpreter: frame.Interpreter{
			Kind: frame.Python, Command: []string{"/usr/bin/python3"}, Env: fixed, Rlimits: []frame.Rlimit{{What: 7, Limit: 256}}, Memory: 1 << 20, Processes: 3,
		}}
		change(&o)
		return o
	}
	expected := func(o frame.Orders) size {
		t.Helper()
		s := size{memory: sizeStep}
		if err := s.expect(o, time.Minute, fixed); err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := expected(orders(func(*frame.Orders) {}))
	for _, c := range []struct {
		name   string
		change func(*frame.Orders)
		waits  bool
		loaded bool // the same
	}{
		{"Python", func(*frame.Orders) {}, true, true},
		{"Node.js", func(o *frame.Orders) { o.Kind = frame.Node }, true, false},
		{"a shell", func(o *frame.Orders) { o.Kind = frame.Bash }, false, false},
		{"none that is known", func(o *frame.Orders) { o.Kind = "" }, false, false},
		{"a module", func(o *frame.Orders) { o.Plain = false }, false, true},
		{"a policy's variable", func(o *frame.Orders) { o.Env = []string{"HOME=/tmp/home", "TOKEN=secret"} }, false, true},
		{"a policy's value", func(o *frame.Orders) { o.Env = []string{"HOME=/secret"} }, false, true},
		{"other limits", func(o *frame.Orders) { o.Memory, o.Processes, o.Rlimits = 2<<20, 4, nil }, true, true},
		{"standard input", func(o *frame.Orders) { o.Input = true }, true, true},
	} {
		got := expected(orders(c.change))
		if got.waits != "" != c.waits || (got.loaded == base.loaded) != c.loaded {
			t.Errorf("%s: what waits is %q, in memory is %q", c.name, got.waits, got.loaded)
		}
		if c.waits && c.name != "Python" && got.waits == base.waits {
			t.Errorf("%s: what waits is the same as for others", c.name)
		}
		if strings.Contains(got.loaded+got.waits, "secret") {
			t.Errorf("R16: %s: a machine is told a policy's variables before its run: %q, %q", c.name, got.loaded, got.waits)
		}
	}
}
