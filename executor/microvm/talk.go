//go:build linux && amd64

package microvm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// A talk is the host's end of a machine's serial port.
type talk struct {
	f *os.File
	r *bufio.Reader
}

// newTalk returns the two ends of a socket.
func newTalk() (ours *os.File, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "machine"), os.NewFile(uintptr(pair[1]), "machine"), nil
}

// until is when all that is heard and said must be over.
func (t talk) until(deadline time.Time) { _ = t.f.SetDeadline(deadline) }

// hear returns the next frame, which is one of the types.
func (t talk) hear(types ...frame.Type) (frame.Type, []byte, error) {
	got, b, err := frame.Heard(t.r)
	if err != nil {
		return 0, nil, err
	}
	for _, want := range types {
		if got == want {
			return got, b, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: %q, which cannot come now", frame.ErrFrame, byte(got))
}

// chunk is how much of the data that follows an order is in one frame: 1 MiB.
const chunk = 1 << 20

// order sends the order, and the data that it says.
func (t talk) order(o frame.Orders, data ...string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(t.f, 64<<10)
	if err := frame.Write(w, frame.Order, text); err != nil {
		return err
	}
	for _, d := range data {
		for len(d) > 0 {
			n := min(len(d), chunk)
			if err := frame.Write(w, frame.Data, []byte(d[:n])); err != nil {
				return err
			}
			d = d[n:]
		}
	}
	return w.Flush()
}

// A failed error says at which step an agent failed, before the script began.
type failed struct{ frame.Failure }

func (f *failed) Error() string {
	if f.Errno == 0 {
		return "its agent failed at " + f.Step.String()
	}
	return fmt.Sprintf("its agent failed at %s: %s", f.Step, syscall.Errno(f.Errno))
}

// started waits until the script has begun.
func (t talk) started() error { return t.answered(frame.Started) }

// answered waits for the answer; a *failed: the agent failed in its place.
func (t talk) answered(want frame.Type) error {
	got, b, err := t.hear(want, frame.Failed)
	if err != nil || got == want {
		return err
	}
	f, err := frame.ParseFailure(b)
	if err != nil {
		return err
	}
	return &failed{f}
}

// follow hands the script's output on until the script has ended, and says how.
func (t talk) follow(stdout, stderr io.Writer) (frame.End, error) {
	for {
		got, b, err := t.hear(frame.Stdout, frame.Stderr, frame.Ended)
		switch {
		case err != nil:
			return frame.End{}, err
		case got == frame.Stdout:
			_, _ = stdout.Write(b) // it never fails
		case got == frame.Stderr:
			_, _ = stderr.Write(b)
		default:
			return frame.ParseEnd(b)
		}
	}
}

// listing takes the list of what the script left.
func (t talk) listing() (tree frame.Tree, err error) {
	for {
		got, b, err := t.hear(frame.Listing, frame.Listed)
		if err != nil || got == frame.Listed {
			return tree, err
		}
		if err := tree.Add(b); err != nil {
			return tree, err
		}
	}
}

// fetch asks for a file of the listing, and returns at most so much of it.
func (t talk) fetch(number uint32, most uint64) ([]byte, error) {
	if err := frame.Write(t.f, frame.Fetch, frame.FetchBytes(number, most)); err != nil {
		return nil, err
	}
	var data []byte
	for {
		got, b, err := t.hear(frame.Content, frame.Whole)
		if err != nil {
			return nil, err
		}
		if got == frame.Whole {
			return data, nil
		}
		if uint64(len(data)+len(b)) > most {
			return nil, fmt.Errorf("%w: more of a file than was asked for", frame.ErrFrame)
		}
		data = append(data, b...)
	}
}

// isGone reports whether the machine is gone, as far as its port can tell.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}
