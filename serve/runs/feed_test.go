package runs

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
)

// A script that writes byte by byte makes no event of each piece, and nothing of
// it is lost or out of order.
func TestPumpJoinsSmallPieces(t *testing.T) {
	live := gate.NewLive(0)
	for i := range gate.DefaultLiveChunks {
		live.Send(gate.Stdout, []byte("é"[i%2:i%2+1]))
		if i == 99 {
			live.Send(gate.Stderr, []byte("!"))
		}
	}
	live.Close()
	f := newFeed(1 << 20)
	f.pump(live)
	got := ""
	for _, e := range f.events {
		if e.Kind == Output {
			got += e.Text
		}
	}
	if want := strings.Repeat("é", 50) + "!" + strings.Repeat("é", 77) + "�"; got != want || len(f.events) != 5 {
		t.Errorf("%d events show %q, want 5 with %q", len(f.events), got, want)
	}
}

// B10: what a feed holds is bounded, whatever comes in; one event it always has.
func TestFeedIsBounded(t *testing.T) {
	f := newFeed(10 * eventSize)
	for range 1000 {
		f.add(Event{Kind: Output, Text: "x"})
	}
	if f.size > f.max || f.first != 1001-uint64(len(f.events)) {
		t.Errorf("it holds %d bytes of %d, from %d on", f.size, f.max, f.first)
	}
	f.add(Event{Kind: Output, Text: strings.Repeat("x", 2*f.max)})
	if len(f.events) != 1 || f.first != 1001 {
		t.Errorf("it holds %d events from %d on, want the last alone", len(f.events), f.first)
	}
}
