package runs

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tracon-go/tracon/gate"
)

// A Kind is what an [Event] tells.
type Kind string

// The kinds of events.
const (
	Started Kind = "started" // the run has its slot and goes to the executor
	Output  Kind = "output"  // it wrote something
	Gap     Kind = "gap"     // output is missing here
	End     Kind = "end"     // it has ended: nothing comes after this
)

// An Event is one thing that happened in a run. What it shows is for looking at
// while the run lasts; the outcome alone is the truth.
type Event struct {
	Seq    uint64 // rises in a run; of a gap it is that of the last event missing
	Kind   Kind
	Stream gate.Stream // of an Output
	Text   string      // of an Output: valid UTF-8, cut between characters
	Lost   int64       // of a Gap: how many bytes are missing; zero: nobody knows
}

// eventSize is about what an event costs beside its text.
const eventSize = 96

// maxText is how much of what was written in one go goes into one event.
const maxText = 16 << 10

// feed holds the last events of one run for those who follow it. It never makes
// the run wait.
type feed struct {
	max int // bytes

	mu      sync.Mutex
	events  []Event       // those held, the oldest first
	first   uint64        // the Seq of events[0], or of the next one
	size    int           // of those held
	cut     int64         // bytes of output in events that are no longer held
	ended   bool          // no more come
	changed chan struct{} // closed at the next change
}

func newFeed(max int) *feed { return &feed{max: max, first: 1, changed: make(chan struct{})} }

func (f *feed) add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Seq = f.first + uint64(len(f.events))
	f.events = append(f.events, e)
	f.size += eventSize + len(e.Text)
	for f.size > f.max && len(f.events) > 1 {
		old := &f.events[0]
		f.size -= eventSize + len(old.Text)
		f.cut += int64(len(old.Text)) + old.Lost
		*old = Event{} // its text goes at once
		f.events = f.events[1:]
		f.first++
	}
	f.ended = f.ended || e.Kind == End
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(f.size)
}

// pump takes what the run shows until it has ended.
func (f *feed) pump(live *gate.Live) {
	var (
		started = live.Started()
		chunks  = live.Chunks()
		texts   = map[gate.Stream]*text{gate.Stdout: {}, gate.Stderr: {}}
		dropped int64
	)
	for open := true; open; {
		var c gate.Chunk
		select {
		case <-started:
			f.add(Event{Kind: Started})
			started = nil
			continue
		case c, open = <-chunks:
		}
		if started != nil && closed(started) { // at the same moment: it comes first
			f.add(Event{Kind: Started})
			started = nil
		}
		if n := live.Dropped(); n > dropped {
			f.add(Event{Kind: Gap, Lost: n - dropped})
			dropped = n
		}
		for c.Stream != 0 {
			var next gate.Chunk
			c, next = join(c, chunks)
			if s := texts[c.Stream].take(c.Data); s != "" { // a stream that is none shows nothing
				f.add(Event{Kind: Output, Stream: c.Stream, Text: s})
			}
			c = next
		}
	}
	for _, s := range []gate.Stream{gate.Stdout, gate.Stderr} {
		if rest := texts[s].rest(); rest != "" {
			f.add(Event{Kind: Output, Stream: s, Text: rest})
		}
	}
}

// join adds to c what follows at once on the same stream: a script that writes
// byte by byte makes no event of each. Next is what came then and is not of it;
// its stream is zero where nothing did.
func join(c gate.Chunk, chunks <-chan gate.Chunk) (joined, next gate.Chunk) {
	for len(c.Data) < maxText {
		select {
		case more, ok := <-chunks:
			if !ok || more.Stream != c.Stream {
				return c, more
			}
			c.Data = append(c.Data, more.Data...)
		default:
			return c, gate.Chunk{}
		}
	}
	return c, gate.Chunk{}
}

// text makes valid UTF-8 of a stream that comes in pieces.
type text struct{ part []byte } // the beginning of a character

func (t *text) take(b []byte) string {
	if t == nil {
		return ""
	}
	b = append(t.part, b...)
	cut := len(b)
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				cut = i
			}
			break
		}
	}
	t.part = append([]byte(nil), b[cut:]...)
	return strings.ToValidUTF8(string(b[:cut]), "\uFFFD")
}

// rest returns what is left of a stream that has ended within a character.
func (t *text) rest() string { return strings.ToValidUTF8(string(t.part), "\uFFFD") }
