package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Type says what a frame holds.
type Type byte

// What an agent says, in this order.
const (
	Hello   Type = 'H' // [Greeting]; once more for each Wake and each Prepare
	Started Type = 'S' // nothing: the interpreter has begun
	Failed  Type = 'F' // a Failure, in place of Started, or of Hello behind a Prepare
	Stdout  Type = '1' // some of that stream, a byte at least
	Stderr  Type = '2'
	Ended   Type = 'E' // an End; no process of the script is left
	Listing Type = 'L' // some entries of a Tree
	Listed  Type = 'M' // nothing: those were all
	Content Type = 'D' // some of a file that was asked for, a byte at least
	Whole   Type = 'Z' // nothing: that was all of it, or as much of it as there was
)

// What a host says.
const (
	Wake    Type = 'w' // what [WakeBytes] writes, before an Order, to a machine that was restored
	Prepare Type = 'p' // a [Ready] in JSON, before an Order
	Order   Type = 'o' // an [Orders] in JSON, once
	Data    Type = 'd' // what an order says that follows, in as many frames as it takes
	Fetch   Type = 'f' // a file of the listing: its number (4 bytes) and how many bytes of it at most (8 bytes)
)

// Greeting is what an agent of this version says first.
const Greeting = "tracon-microvm/3"

// Bounds of a frame, in bytes.
const (
	MaxChunk = 32 << 10 // of what an agent says
	MaxOrder = 64 << 20 // of what a host says
)

const headBytes = 5

// ErrFrame is wrapped by the error for what is no frame, or none that may come.
var ErrFrame = errors.New("not what an agent says")

// lengths are how long the frames of an agent may be.
var lengths = map[Type][2]int{
	Hello: {len(Greeting), len(Greeting)}, Started: {0, 0}, Failed: {failureBytes, failureBytes}, Stdout: {1, MaxChunk}, Stderr: {1, MaxChunk},
	Ended: {endBytes, endBytes}, Listing: {1, MaxChunk}, Listed: {0, 0}, Content: {1, MaxChunk}, Whole: {0, 0},
}

// Write writes one frame.
func Write(w io.Writer, t Type, payload []byte) error {
	b := make([]byte, headBytes, headBytes+len(payload))
	b[0] = byte(t)
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	_, err := w.Write(append(b, payload...))
	return err
}

// Heard reads one frame of an agent. It reads no more than the longest.
//
// # Errors
//
// One that wraps ErrFrame; that of r; io.EOF before the first byte,
// io.ErrUnexpectedEOF behind it.
func Heard(r io.Reader) (Type, []byte, error) {
	t, n, err := head(r)
	if err != nil {
		return 0, nil, err
	}
	may, known := lengths[t]
	if !known || n < may[0] || n > may[1] {
		return 0, nil, fmt.Errorf("%w: a frame of type %q with %d bytes", ErrFrame, byte(t), n)
	}
	b, err := body(r, n)
	if err == nil && t == Hello && string(b) != Greeting {
		return 0, nil, fmt.Errorf("%w: it greets otherwise", ErrFrame)
	}
	return t, b, err
}

// Told reads one frame of a host.
func Told(r io.Reader) (Type, []byte, error) {
	t, n, err := head(r)
	if err != nil {
		return 0, nil, err
	}
	if n > MaxOrder {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", ErrFrame, n)
	}
	b, err := body(r, n)
	return t, b, err
}

func head(r io.Reader) (Type, int, error) {
	var b [headBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, err
	}
	return Type(b[0]), int(binary.BigEndian.Uint32(b[1:])), nil
}

func body(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// A Step is what an agent was about when it failed.
type Step byte

// The steps before a script has begun.
const (
	_ Step = iota
	Boot
	Take   // taking the order
	Digest // comparing the closure's digest with the order's
	Lay    // laying the files out
	Wall   // putting up the walls within the machine
	Start  // starting the interpreter
	lastStep
)

// String says what the step is, for operators.
func (s Step) String() string {
	return [...]string{"nothing", "starting the machine", "taking the order", "comparing the digest", "laying the files out", "putting up the walls inside", "starting the interpreter"}[s]
}

// A Failure says that no script was started.
type Failure struct {
	Step  Step
	Errno uint32 // zero: not an error of the kernel's
}

const failureBytes = 5

// Bytes writes f.
func (f Failure) Bytes() []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(f.Step)}, f.Errno)
}

// maxErrno is the largest that the kernel has.
const maxErrno = 4095

// ParseFailure reads a Failure.
func ParseFailure(b []byte) (Failure, error) {
	if len(b) != failureBytes || b[0] == 0 || b[0] >= byte(lastStep) || binary.BigEndian.Uint32(b[1:]) > maxErrno {
		return Failure{}, fmt.Errorf("%w: a failure that is none", ErrFrame)
	}
	return Failure{Step(b[0]), binary.BigEndian.Uint32(b[1:])}, nil
}

// An End says how the script's first process ended.
type End struct {
	Signal      byte   // that killed it; zero: it exited
	Code        byte   // with which it exited; zero where a signal killed it
	OutOfMemory bool   // a process was killed at the limit of memory
	Left        uint32 // processes that were still there, and were stopped
}

const (
	endBytes  = 7
	maxSignal = 64
	maxLeft   = 1 << 22 // the kernel has no more processes (PID_MAX_LIMIT)
)

// Bytes writes e.
func (e End) Bytes() []byte {
	b := []byte{e.Signal, e.Code, 0}
	if e.OutOfMemory {
		b[2] = 1
	}
	return binary.BigEndian.AppendUint32(b, e.Left)
}

// ParseEnd reads an End.
func ParseEnd(b []byte) (End, error) {
	if len(b) != endBytes || b[0] > maxSignal || b[0] != 0 && b[1] != 0 || b[2] > 1 || binary.BigEndian.Uint32(b[3:]) > maxLeft {
		return End{}, fmt.Errorf("%w: an ending that is none", ErrFrame)
	}
	return End{b[0], b[1], b[2] == 1, binary.BigEndian.Uint32(b[3:])}, nil
}

// SeedBytes is how much chance a machine is given at a time.
const SeedBytes = 64

const timeBytes = 8

// WakeBytes writes the time, in nanoseconds since 1970, and the chance.
func WakeBytes(now int64, seed [SeedBytes]byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(now)), seed[:]...)
}

// ParseWake reads what WakeBytes writes.
func ParseWake(b []byte) (now int64, seed []byte, err error) {
	if len(b) != timeBytes+SeedBytes {
		return 0, nil, fmt.Errorf("%w: it is woken with %d bytes", ErrFrame, len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), b[timeBytes:], nil
}

// ParseFetch reads which file is asked for, and how many bytes of it.
func ParseFetch(b []byte) (number uint32, most uint64, err error) {
	if len(b) != 12 {
		return 0, 0, fmt.Errorf("%w: a file is asked for in %d bytes", ErrFrame, len(b))
	}
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), nil
}

// FetchBytes writes it.
func FetchBytes(number uint32, most uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, number), most)
}
