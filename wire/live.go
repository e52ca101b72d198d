package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// ProtocolLive says, in [Info].Protocols, that a runner knows [LiveType].
const ProtocolLive = "tracon-live/1"

// LiveType is the media type of an answer that shows what the script writes before its
// end: lines of JSON, each a [Frame]. A host that wants it names it in Accept, for a run
// with the member "tracon"; a runner that has nothing to show before the end answers
// as ever.
const LiveType = "application/vnd.tracon.live+jsonl"

// Bounds of what is shown of one run. Of each stream it has no more bytes than the run
// asked for, either.
const (
	MaxShown  = 16 << 20 // bytes of each stream
	MaxPiece  = 64 << 10 // bytes of one piece
	MaxPieces = 1 << 16  // of a run: whoever has more to show joins some

	maxPieceLine = MaxPiece/3*4 + 8<<10 // bytes of a piece as JSON: base64, and an id of MaxName bytes, escaped
	maxOffset    = 1 << 40
)

// The streams of an [Output].
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// An Output is a piece of what a script wrote. It is for looking at while the run lasts:
// pieces may be missing, and the answer alone, which has all of it, is the truth.
type Output struct {
	ID     string `json:"id"`     // of the run
	Stream string `json:"stream"` // Stdout or Stderr
	Offset int64  `json:"offset"` // bytes of both streams that came before it, those that were lost too
	Data   []byte `json:"data"`   // any bytes; none where Offset alone is told, since what came last was lost
}

// Check says what in o is not of this wire's form, or nil.
func (o Output) Check() error {
	switch {
	case o.ID == "" || len(o.ID) > MaxName:
		return malformed("output.id has %d bytes, want 1 to %d", len(o.ID), MaxName)
	case o.Stream != Stdout && o.Stream != Stderr:
		return malformed("output.stream %.40q is none", o.Stream)
	case o.Offset < 0 || o.Offset > maxOffset:
		return malformed("output.offset is %d", o.Offset)
	case len(o.Data) > MaxPiece:
		return malformed("output.data has %d bytes, at most %d", len(o.Data), MaxPiece)
	}
	return nil
}

// A Frame is one line of an answer of [LiveType]: exactly one of its fields is set. All
// but the last are an Output; the last is the answer, whole, or the problem in its place.
type Frame struct {
	Output  *Output  `json:"output,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Encode checks f and returns its line.
func (f Frame) Encode() ([]byte, error) {
	n := 0
	var errs []error
	if f.Output != nil {
		n++
		errs = append(errs, f.Output.Check())
	}
	if f.Answer != nil {
		n++
		errs = append(errs, f.Answer.sendable())
	}
	if f.Problem != nil {
		n++
	}
	if n != 1 {
		errs = append(errs, malformed("a frame has %d of output, answer and problem, want one", n))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return encode(f)
}

// Frames reads an answer of [LiveType]. It is for one goroutine.
type Frames struct {
	r     *bufio.Reader
	max   int64
	line  []byte
	ended bool
}

// NewFrames returns a reader of r whose last frame has at most max bytes; zero means
// [MaxAnswer].
func NewFrames(r io.Reader, max int64) *Frames {
	return &Frames{r: bufio.NewReader(r), max: orMost(max, MaxAnswer)}
}

// Next returns the next frame. Behind the last one it returns io.EOF, where r ends too.
//
// # Errors
//
// io.ErrUnexpectedEOF where r ends before the last frame does; one that wraps
// ErrTooLarge, ErrMalformed, or r's own.
func (f *Frames) Next() (Frame, error) {
	if f.ended {
		switch _, err := f.r.ReadByte(); {
		case err == nil:
			return Frame{}, malformed("something comes behind the last frame")
		case err == io.EOF:
			return Frame{}, io.EOF
		default:
			return Frame{}, fmt.Errorf("wire: reading: %w", err)
		}
	}
	if err := f.read(); err != nil {
		return Frame{}, err
	}
	var in struct {
		Output  *Output   `json:"output"`
		Answer  *answered `json:"answer"`
		Problem *Problem  `json:"problem"`
	}
	if err := strictjson.UnmarshalFolded(f.line, &in, strictjson.Limits{Depth: 17}); err != nil { // one more than an answer has
		return Frame{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	f.ended = in.Output == nil
	switch {
	case in.Output != nil && in.Answer == nil && in.Problem == nil:
		if len(f.line) > maxPieceLine {
			return Frame{}, malformed("a piece of output in a line of %d bytes", len(f.line))
		}
		return Frame{Output: in.Output}, in.Output.Check()
	case in.Output == nil && in.Answer != nil && in.Problem == nil:
		a, err := in.Answer.answer()
		return Frame{Answer: &a}, err
	case in.Output == nil && in.Answer == nil && in.Problem != nil:
		if in.Problem.Code == "" {
			return Frame{}, malformed("the problem has no code")
		}
		return Frame{Problem: in.Problem}, nil
	}
	return Frame{}, malformed("a frame has not exactly one of output, answer and problem")
}

// read reads the next line.
func (f *Frames) read() error {
	f.line = f.line[:0]
	for {
		part, err := f.r.ReadSlice('\n')
		f.line = append(f.line, part...)
		switch {
		case int64(len(f.line)) > f.max && int64(len(f.line)) > maxPieceLine:
			return fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, f.max)
		case err == nil:
			f.line = bytes.TrimSuffix(f.line, []byte("\n"))
			return nil
		case err == io.EOF:
			return fmt.Errorf("wire: reading: %w", io.ErrUnexpectedEOF)
		case err != bufio.ErrBufferFull:
			return fmt.Errorf("wire: reading: %w", err)
		}
	}
}
