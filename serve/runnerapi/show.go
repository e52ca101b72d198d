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

	held   [len(streams)][]byte // to be shown
	shown  [len(streams)]int
	cut    int64 // bytes beyond a bound, which are not shown
	told   int64 // of both streams, what whoever is shown them knows of
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

func (s *showing) hold(c gate.Chunk) {
	for i, stream := range streams {
		if stream.of == c.Stream {
			n := min(len(c.Data), s.most-s.shown[i]-len(s.held[i])) // a label may be longer than the secret in whose place it stands
			s.held[i] = append(s.held[i], c.Data[:n]...)
			s.cut += int64(len(c.Data) - n)
		}
	}
}

// flush shows what is held, and reports whether anything was.
func (s *showing) flush() (any bool) {
	for i, stream := range streams {
		for len(s.held[i]) > 0 {
			data := s.held[i][:min(len(s.held[i]), wire.MaxPiece)]
			s.held[i] = s.held[i][len(data):]
			any = true
			if s.pieces == wire.MaxPieces-1 { // the last is for end
				s.cut += int64(len(data))
				continue
			}
			s.piece(stream.name, data)
			s.shown[i] += len(data)
		}
		s.held[i] = nil
	}
	return any
}

// end tells of what was lost behind the last piece.
func (s *showing) end() {
	if s.offset() > s.told {
		s.piece(wire.Stdout, []byte{})
	}
}

// offset is how many bytes were shown or lost.
func (s *showing) offset() int64 {
	all := s.live.Dropped() + s.cut
	for _, n := range s.shown {
		all += int64(n)
	}
	return all
}

func (s *showing) piece(stream string, data []byte) {
	o := wire.Output{ID: s.id, Stream: stream, Offset: s.offset(), Data: data}
	s.pieces++
	s.told = o.Offset + int64(len(data))
	s.show(o)
}
