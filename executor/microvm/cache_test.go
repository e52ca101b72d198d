//go:build linux && amd64

package microvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/snapshot"
	"github.com/tracon-go/tracon/executor/microvm/kit"
)

func key(n int) bundle.Digest { return bundle.Sum(fmt.Append(nil, n)) }

// held returns a saved machine with files.
func held(t testing.TB) *saved {
	t.Helper()
	s := &saved{counter: 7}
	for _, f := range []**os.File{&s.memory, &s.state} {
		var err error
		if *f, err = newMemory("test", 4096); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func isOpen(f *os.File) bool {
	_, err := f.Stat()
	return err == nil
}

// A machine is saved once for all who need it at the same time; what could not be saved is
// not tried again at once. Who wanted it first may leave before it is saved.
func TestCacheMakesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache
		makes := 0
		slow := func(s *saved, err error) func() (*saved, error) {
			return func() (*saved, error) {
				makes++
				time.Sleep(time.Second)
				return s, err
			}
		}
		type got struct {
			s   *saved
			err error
		}
		many := func(ctx context.Context, k bundle.Digest, f func() (*saved, error)) (list []got) {
			ch := make(chan got)
			for range 5 {
				go func() {
					s, release, err := c.take(ctx, k, f)
					if err == nil {
						release()
					}
					ch <- got{s, err}
				}()
			}
			for range 5 {
				list = append(list, <-ch)
			}
			return list
		}
		one := held(t)
		for _, g := range many(t.Context(), key(1), slow(one, nil)) {
			if g.err != nil || g.s.memory != one.memory {
				t.Errorf("got %+v", g)
			}
		}
		if makes != 1 {
			t.Errorf("%d were made, want 1", makes)
		}
		no := errors.New("no")
		for range 2 {
			for _, g := range many(t.Context(), key(2), slow(nil, no)) {
				if !errors.Is(g.err, no) {
					t.Errorf("got %v", g.err)
				}
			}
		}
		if makes != 2 {
			t.Errorf("after a failure %d were made, want 2", makes)
		}
		time.Sleep(unsavedTime)
		two := held(t)
		if g := many(t.Context(), key(2), slow(two, nil)); g[0].err != nil || makes != 3 {
			t.Errorf("later: %v, %d made", g[0].err, makes)
		}
		hung := fmt.Errorf("%w: so it is", errHung)
		for _, want := range []int{4, 5} { // the next one may come up
			if g := many(t.Context(), key(3), slow(nil, hung)); !errors.Is(g[0].err, errHung) || makes != want {
				t.Errorf("it hangs: %v, %d made, want %d", g[0].err, makes, want)
			}
		}
		// Runs have less time than it takes: each is told so, and a later one has it.
		four, short := held(t), errors.New("the caller left")
		make4 := slow(four, nil)
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second/4, short)
			if _, _, err := c.take(ctx, key(4), make4); !errors.Is(err, short) {
				t.Errorf("who left is told %v", err)
			}
			cancel()
		}
		if g := many(t.Context(), key(4), make4); g[0].err != nil || g[0].s.memory != four.memory || makes != 6 {
			t.Errorf("who stayed got %+v; %d were made, want 6", g[0], makes)
		}
		// One that is being made when all is let go of is closed when it is made.
		five := held(t)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second/4, short)
		defer cancel()
		if _, _, err := c.take(ctx, key(5), slow(five, nil)); !errors.Is(err, short) {
			t.Errorf("who left is told %v", err)
		}
		c.clear()
		for i, s := range []*saved{one, two, four, five} {
			if isOpen(s.memory) || isOpen(s.state) {
				t.Errorf("file %d is open", i)
			}
		}
	})
}

// B10: whoever calls, leaves and calls again has one machine saved at a time.
func TestCacheMakesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache
		var now, most, all atomic.Int32
		left, busy := errors.New("left"), 0
		for n := range 200 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, left)
			_, _, err := c.take(ctx, key(n%(mostSaved+1)), func() (*saved, error) {
				all.Add(1)
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(2 * time.Second)
				now.Add(-1)
				return held(t), nil
			})
			cancel()
			switch {
			case errors.Is(err, errMaking):
				busy++
				time.Sleep(50 * time.Millisecond)
			case err != nil && !errors.Is(err, left):
				t.Fatalf("got %v", err)
			}
		}
		if most.Load() != 1 || all.Load() < 3 || busy == 0 {
			t.Errorf("B10: %d were made at once, want 1; %d in all, and %d calls saw that another one was", most.Load(), all.Load(), busy)
		}
		c.clear()
	})
}

// B10: few saved machines are held in memory; one that is let go of stays for those who
// have it.
func TestCacheBound(t *testing.T) {
	var c cache
	first := held(t)
	_, release, err := c.take(t.Context(), key(0), func() (*saved, error) { return first, nil })
	if err != nil {
		t.Fatal(err)
	}
	var all []*saved
	for n := range mostSaved + 1 {
		s := held(t)
		all = append(all, s)
		_, free, err := c.take(t.Context(), key(n+1), func() (*saved, error) { return s, nil })
		if err != nil {
			t.Fatal(err)
		}
		free()
	}
	if len(c.list) != mostSaved || isOpen(all[0].memory) || !isOpen(all[1].memory) {
		t.Errorf("B10: %d are held, want %d", len(c.list), mostSaved)
	}
	if !isOpen(first.memory) {
		t.Error("what somebody has is closed")
	}
	release()
	if isOpen(first.memory) {
		t.Error("what nobody has is open")
	}
	c.clear()
	if isOpen(all[mostSaved].state) {
		t.Error("after clear a file is open")
	}
}

// B10: what could not be restored three times, one after the other, is restored no more,
// and made anew later.
func TestCacheFails(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := cache{store: store}
		defer c.clear()
		one := held(t)
		if err := store.Save(t.Context(), snapshot.Info{Key: key(1), Memory: 4096}, one.memory, nil); err != nil {
			t.Fatal(err)
		}
		take := func() error {
			s, release, err := c.take(t.Context(), key(1), func() (*saved, error) { return one, nil })
			if err == nil {
				release()
				c.told(s, false)
			}
			return err
		}
		for n := range mostFails {
			if err := take(); err != nil {
				t.Fatalf("try %d: %v", n, err)
			}
		}
		if err := take(); !errors.Is(err, errNoRestore) {
			t.Errorf("B10: got %v", err)
		}
		if _, _, err := store.Load(key(1), one.memory); !errors.Is(err, snapshot.ErrNone) {
			t.Errorf("it is kept: %v", err)
		}
		time.Sleep(unsavedTime)
		one = held(t)
		if err := take(); err != nil {
			t.Errorf("made anew: %v", err)
		}
	})
}

// B1: a machine was saved by what its processor and the kernel let it find out; how fast
// the processor is at the moment is not of that.
func TestKindOf(t *testing.T) {
	const one, kernel = "processor : 0\nmodel : 1\ncpu MHz : 2000\nflags : a b\n\nprocessor : 1\n", "Linux version 6.1.0-1\n"
	kind := func(processors, kernel string) bundle.Digest {
		d, err := kindOf(processors, kernel)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	was := kind(one, kernel)
	for _, tt := range []struct {
		name, processors, kernel string
		same                     bool
	}{
		{"its speed", strings.Replace(one, "2000", "2600", 1), kernel, true},
		{"its model", strings.Replace(one, "model : 1", "model : 2", 1), kernel, false},
		{"its flags", strings.Replace(one, "a b", "a", 1), kernel, false},
		{"the kernel", one, "Linux version 6.1.0-2\n", false},
	} {
		if got := kind(tt.processors, tt.kernel); (got == was) != tt.same {
			t.Errorf("%s changed: the same kind %t, want %t", tt.name, got == was, tt.same)
		}
	}
	if _, err := kindOf("", kernel); err == nil {
		t.Error("of nothing there is a kind")
	}
}

// B1: whatever a saved machine was made with, another one of it has another key; so has a
// machine that does not differ, the same.
func TestKey(t *testing.T) {
	type made struct {
		kit                kit.Info
		disk, loaded       string
		by                 qemu
		program, processor bundle.Digest
		m                  machine
	}
	file := func() *os.File {
		f, err := newMemory("test", 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	base := made{
		kit: kit.Info{Kernel: key(1), Initrd: key(2), Agent: key(3)}, disk: "sha256:x", by: qemu{"/usr/bin/qemu", "7.2"}, program: key(4), processor: key(5),
		m: machine{kernel: file(), initrd: file(), disk: file(), memory: sizeStep, processors: 1, counter: 7},
	}
	of := func(m made) bundle.Digest { return keyOf(m.kit, m.disk, m.by, m.program, m.processor, m.loaded, m.m) }
	seen := map[bundle.Digest]string{of(base): "as it was"}
	for _, c := range []struct {
		name   string
		change func(*made)
		same   bool
	}{
		{"the kernel", func(m *made) { m.kit.Kernel = key(9) }, false},
		{"the first file system", func(m *made) { m.kit.Initrd = key(9) }, false},
		{"the agent", func(m *made) { m.kit.Agent = key(9) }, false},
		{"the disk", func(m *made) { m.disk = "sha256:y" }, false},
		{"the interpreter in its memory", func(m *made) { m.loaded = "{}" }, false},
		{"no disk", func(m *made) { m.disk, m.m.disk = "none", nil }, false},
		{"QEMU's version", func(m *made) { m.by.version = "8.0" }, false},
		{"QEMU's path", func(m *made) { m.by.file = "/opt/qemu" }, false},
		{"QEMU's bytes", func(m *made) { m.program = key(9) }, false},
		{"the processor", func(m *made) { m.processor = key(9) }, false},
		{"the memory", func(m *made) { m.m.memory *= 2 }, false},
		{"the processors", func(m *made) { m.m.processors = 2 }, false},
		{"the processor's help", func(m *made) { m.m.accelerate = true }, false},
		{"the rate of the counter", func(m *made) { m.m.counter = 8 }, true}, // it is compared by itself
		{"other descriptors", func(m *made) { m.m.kernel, m.m.ram = file(), file() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := base
			c.change(&m)
			k := of(m)
			if was, known := seen[k]; known != c.same {
				t.Errorf("B1: it has the key of %q: %t, want %t", was, known, c.same)
			}
			seen[k] = c.name
		})
	}
}

// A processor is of some kind, and the same each time.
func TestProcessorKind(t *testing.T) {
	one, err := processorKind()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := processorKind(); err != nil || one != two || one.IsZero() {
		t.Errorf("got %s and %s, %v", one, two, err)
	}
}

// What is QEMU's alone for a saved machine: its memory is a file, shared while it is saved
// and private when it is restored.
func TestMachineOfMemory(t *testing.T) {
	m := machine{memory: sizeStep, ram: os.Stdin}
	for _, want := range []string{"share=on,dump=off", "share=off,dump=off -incoming defer"} {
		if line := strings.Join(qemu{}.argv(m), " "); !strings.Contains(line, want) || !strings.Contains(line, "memory-backend=ram") {
			t.Errorf("%q is not in %s", want, line)
		}
		m.waits = true
	}
}
