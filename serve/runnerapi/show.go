package runnerapi

import (
	"time"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// pace is by how much the pause behind a piece grows with each: the first pieces come at
// once, the thousandth 0.1 s after the one before. So the longest run, of 24 h, has fewer
// than [wire.MaxPieces], and what comes within a pause is one piece.
const pace = 100 * time.Microsecond

// streams are those of an output, in the order in which they are shown when both have
// something.
var streams = [...]struct {
	of   gate.Stream
	name string
}{{gate.Stdout, wire.Stdout}, {gate.Stderr, wire.Stderr}}

// A showing hands on what a run writes, in pieces, within the bounds of the wire. It
// belongs to one goroutine.
type showing struct {
	id   string
	most int // bytes of each stream
	live *gate.Live
	show func(wire.Output)

	held   [len(streams)]held // to be shown
	shown  [len(streams)]int
	full   [len(streams)]bool // no more of it is shown, and end tells of the rest
	lost   int64              // bytes of both streams before what comes next, that are not shown
	cut    int64              // bytes that came, and are not shown because of a bound
	told   int64              // of both streams, what whoever is shown them knows of
	pieces int
}

// showRun shows what run writes to live, until end is called: that returns when show is
// called no more.
func showRun(run wire.Run, live *gate.Live, show func(wire.Output)) (end func()) {
	s := &showing{id: run.More.ID, most: min(run.MaxOutputBytes, wire.MaxShown), live: live, show: show}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.follow()
	}()
	return func() {
		live.Close()
		<-done
	}
}

// follow takes what comes at once, however long a pause is: what would wait in the Live
// could be lost there.
func (s *showing) follow() {
	var pause <-chan time.Time // nil: the next piece goes at once
	for {
		select {
		case c, open := <-s.live.Chunks():
			if !open {
				s.flush()
				s.end()
				return
			}
			s.hold(c)
		case <-pause:
			pause = nil
		}
		if pause == nil && s.flush() {
			pause = time.After(time.Duration(s.pieces) * pace)
		}
	}
}

// held is what came of one stream since its last piece: at most two parts with a gap
// between them. A gap is told where it is: who masks what comes from here goes by it.
type held struct {
	parts [2][]byte
	lost  int64 // before the second
}

func (h *held) len() int { return len(h.parts[0]) + len(h.parts[1]) }

func (s *showing) hold(c gate.Chunk) {
	for i, stream := range streams {
		if stream.of != c.Stream {
			continue
		}
		if s.full[i] {
			s.cut += int64(len(c.Data))
			continue
		}
		h, last := &s.held[i], 0
		if h.lost > 0 {
			last = 1
		}
		switch {
		case c.Lost == 0:
		case h.len() == 0:
			s.lost += c.Lost
		default: // what came between two gaps is in the one gap that they become
			h.lost += c.Lost + int64(len(h.parts[1]))
			s.cut += int64(len(h.parts[1]))
			h.parts[1], last = nil, 1
		}
		n := min(len(c.Data), s.most-s.shown[i]-h.len()) // a label may be longer than the secret in whose place it stands
		h.parts[last] = append(h.parts[last], c.Data[:n]...)
		s.cut += int64(len(c.Data) - n)
		s.full[i] = n < len(c.Data)
	}
}

// flush shows what is held, and reports whether anything was.
func (s *showing) flush() (any bool) {
	for i := range streams {
		h := s.held[i]
		s.held[i] = held{}
		any = any || h.len() > 0
		for part, data := range h.parts {
			if part == 1 {
				s.lost += h.lost
			}
			for ; len(data) > 0; data = data[min(len(data), wire.MaxPiece):] {
				s.piece(i, data[:min(len(data), wire.MaxPiece)])
			}
		}
	}
	return any
}

// end tells of what was lost behind the last piece.
func (s *showing) end() {
	s.lost = s.live.Dropped() + s.cut
	if s.offset() > s.told {
		s.say(wire.Stdout, []byte{})
	}
}

// offset is how many bytes were shown or lost.
func (s *showing) offset() int64 {
	all := s.lost
	for _, n := range s.shown {
		all += int64(n)
	}
	return all
}

// piece shows data of a stream, unless only the last piece is left, which is for end.
func (s *showing) piece(i int, data []byte) {
	if s.pieces == wire.MaxPieces-1 {
		s.cut += int64(len(data))
		return
	}
	s.say(streams[i].name, data)
	s.shown[i] += len(data)
}

func (s *showing) say(stream string, data []byte) {
	o := wire.Output{ID: s.id, Stream: stream, Offset: s.offset(), Data: data}
	s.pieces++
	s.told = o.Offset + int64(len(data))
	s.show(o)
}
