package handover

import (
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// ErrShown is wrapped by the error for output that a runner cannot have of the request.
var ErrShown = errors.New("handover: what the runner shows does not hold")

// A Show hands on what a runner shows of the request's run while it lasts, to whoever
// follows the request. Nothing in it is trusted: it is of this run, and of each stream no
// more than the request allows. It never waits for the follower, and nothing of it is
// in the result. It is for one goroutine.
type Show struct {
	req    executor.Request
	bytes  map[string]int // by stream
	at     int64          // bytes of both streams that were shown or lost
	pieces int
}

// NewShow returns a Show for the request.
func NewShow(req executor.Request) *Show { return &Show{req: req, bytes: map[string]int{}} }

// Wanted reports whether anybody follows the request.
func Wanted(req executor.Request) bool { return req.Live() != nil }

// Take hands a piece on. What came to be lost before it is told to the follower.
//
// # Errors
//
// One that wraps ErrShown: nothing of the piece was shown.
func (s *Show) Take(o wire.Output) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrShown}, args...)...)
	}
	if err := o.Check(); err != nil {
		return bad("%w", err)
	}
	most := min(s.req.MaxOutputBytes(), wire.MaxShown)
	switch {
	case o.ID != s.req.ID():
		return bad("it is of another run")
	case s.pieces >= wire.MaxPieces:
		return bad("it comes in more than %d pieces", wire.MaxPieces)
	case s.bytes[o.Stream]+len(o.Data) > most:
		return bad("%d bytes of %s, at most %d may be shown", s.bytes[o.Stream]+len(o.Data), o.Stream, most)
	case o.Offset < s.at:
		return bad("a piece at %d, behind %d bytes", o.Offset, s.at)
	case o.Offset == s.at && len(o.Data) == 0:
		return bad("a piece that tells nothing")
	}
	s.pieces++
	s.bytes[o.Stream] += len(o.Data)
	live := s.req.Live()
	stream := gate.Stdout
	if o.Stream == wire.Stderr {
		stream = gate.Stderr
	}
	live.Lost(stream, o.Offset-s.at)
	s.at = o.Offset + int64(len(o.Data))
	live.Send(stream, o.Data)
	return nil
}
