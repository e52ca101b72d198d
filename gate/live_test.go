package gate_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tracon-go/tracon/gate"
)

// A script never waits for whoever watches it: what nobody takes is dropped,
// and counted. In a bubble a send that blocks would be a deadlock.
func TestLiveNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gate.NewLive(2)
		for range 5 {
			l.Send(gate.Stdout, []byte("abc"))
		}
		if got := l.Dropped(); got != 9 {
			t.Errorf("%d bytes are dropped, want 9", got)
		}
		l.Lost(gate.Stdout, 1<<20)
		l.Lost(gate.Stderr, -1)
		if got := l.Dropped(); got != 9+1<<20 {
			t.Errorf("%d bytes are dropped or lost, want %d", got, 9+1<<20)
		}
		l.Close()
		l.Close()
		l.Send(gate.Stderr, []byte("late"))
		n := 0
		for c := range l.Chunks() {
			n++
			if c.Stream != gate.Stdout || string(c.Data) != "abc" {
				t.Errorf("got %v", c)
			}
		}
		if n != 2 || l.Dropped() != 9+1<<20 {
			t.Errorf("%d chunks, %d bytes dropped; want 2 and 9 and those that were lost", n, l.Dropped())
		}
	})
}

func TestLiveCopies(t *testing.T) {
	l := gate.NewLive(0)
	b := []byte("abc")
	l.Send(gate.Stdout, b)
	l.Send(gate.Stdout, nil)
	copy(b, "xyz")
	l.Close()
	var got []string
	for c := range l.Chunks() {
		got = append(got, string(c.Data))
	}
	if len(got) != 1 || got[0] != "abc" {
		t.Errorf("got %q, want one chunk as it was sent", got)
	}
}

func TestLiveHoldsTheDefault(t *testing.T) {
	l := gate.NewLive(-1)
	for range gate.DefaultLiveChunks + 1 {
		l.Send(gate.Stdout, []byte("x"))
	}
	if got := l.Dropped(); got != 1 {
		t.Errorf("%d bytes are dropped of %d chunks, want 1", got, gate.DefaultLiveChunks+1)
	}
}

// The nil Live takes everything and shows nothing.
func TestNilLive(t *testing.T) {
	var l *gate.Live
	l.Send(gate.Stdout, []byte("x"))
	l.Lost(gate.Stdout, 1)
	l.Start()
	l.Close()
	for range l.Chunks() {
		t.Error("it shows something")
	}
	select {
	case <-l.Admitted():
		t.Error("it was admitted")
	case <-l.Started():
		t.Error("it started")
	default:
	}
	if l.Dropped() != 0 {
		t.Error("it counts")
	}
}

// Each run tells once that it started, whoever says so.
func TestLiveStarts(t *testing.T) {
	l := gate.NewLive(0)
	l.Start()
	l.Start()
	<-l.Started()
	select {
	case <-l.Admitted():
		t.Error("no gate has admitted it")
	default:
	}
}

// Senders, a reader and Close at once: nothing is lost uncounted, nobody panics.
func TestLiveConcurrently(t *testing.T) {
	for range 50 {
		l := gate.NewLive(4)
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for range 50 {
					l.Send(gate.Stderr, []byte("x"))
				}
			})
		}
		var reader sync.WaitGroup
		got := 0
		reader.Go(func() {
			for c := range l.Chunks() {
				got += len(c.Data)
			}
		})
		senders.Wait()
		l.Close()
		reader.Wait()
		if total := int64(got) + l.Dropped(); total != 200 {
			t.Fatalf("%d bytes are shown and %d dropped, want 200 in all", got, l.Dropped())
		}

		l = gate.NewLive(4)
		for range 4 {
			senders.Go(func() {
				for range 50 {
					l.Send(gate.Stdout, []byte("x"))
				}
			})
		}
		senders.Go(l.Close)
		senders.Go(l.Close)
		senders.Wait()
	}
}
