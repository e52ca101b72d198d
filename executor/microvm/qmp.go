//go:build linux && amd64

package microvm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A qmp is the client of QEMU's control socket. A script that has left its machine may
// be at the other end: what comes is bounded, and says no more than was asked.
type qmp struct {
	w io.Writer
	r *bufio.Reader
}

// Bounds of what is read of a control socket.
const (
	maxLine   = 64 << 10 // bytes of a line
	maxEvents = 100      // lines before an answer
)

var errQMP = errors.New("QEMU's control socket says what it never says")

func newQMP(rw io.ReadWriter) *qmp { return &qmp{rw, bufio.NewReaderSize(rw, maxLine)} }

// A message is any that QEMU sends.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Class string `json:"class"`
		Text  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
}

func (q *qmp) read() (m message, err error) {
	line, err := q.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return m, fmt.Errorf("%w: a line of more than %d bytes", errQMP, maxLine)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errQMP, err)
	}
	return m, nil
}

// greet waits for the greeting, and leaves the state in which nothing can be asked.
func (q *qmp) greet() error {
	m, err := q.read()
	if err == nil && m.Greeting == nil {
		err = fmt.Errorf("%w: no greeting", errQMP)
	}
	if err != nil {
		return err
	}
	return q.call("qmp_capabilities", &struct{}{})
}

// call asks, and reads the answer into out.
func (q *qmp) call(name string, out any) error {
	if _, err := fmt.Fprintf(q.w, "{\"execute\":%q}\n", name); err != nil {
		return err
	}
	for range maxEvents {
		m, err := q.read()
		switch {
		case err != nil:
			return err
		case m.Error != nil:
			return fmt.Errorf("QEMU refuses %s: %.200q", name, m.Error.Text)
		case m.Return != nil:
			if err := json.Unmarshal(m.Return, out); err != nil {
				return fmt.Errorf("%w: %w", errQMP, err)
			}
			return nil
		case m.Event == "":
			return fmt.Errorf("%w: neither an answer nor an event", errQMP)
		}
	}
	return fmt.Errorf("%w: %d events and no answer", errQMP, maxEvents)
}
