//go:build linux && amd64

package microvm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A qmp is the client of QEMU's control socket. A script that has left its machine may
// be at the other end: what comes is bounded, and says no more than was asked.
type qmp struct {
	w io.Writer
	r *bufio.Reader

	migration string // how far the last event says that it is
}

// Bounds of what is read of a control socket.
const (
	maxLine   = 64 << 10 // bytes of a line
	maxEvents = 100      // lines before an answer
)

var errQMP = errors.New("QEMU's control socket says what it never says")

func newQMP(rw io.ReadWriter) *qmp { return &qmp{w: rw, r: bufio.NewReaderSize(rw, maxLine)} }

// A message is any that QEMU sends.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Class string `json:"class"`
		Text  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Status string `json:"status"`
	} `json:"data"`
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
	if m.Event == "MIGRATION" {
		q.migration = m.Data.Status
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
	return q.call("qmp_capabilities", nil, &struct{}{})
}

// asks is what is sent for a command; nil: without arguments.
func asks(name string, arguments map[string]any) ([]byte, error) {
	b, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{name, arguments})
	return append(b, '\n'), err
}

// call asks, and reads the answer into out.
func (q *qmp) call(name string, arguments map[string]any, out any) error {
	b, err := asks(name, arguments)
	if err == nil {
		_, err = q.w.Write(b)
	}
	if err != nil {
		return err
	}
	return q.answer(name, out)
}

// hand gives QEMU the file, by that name.
func (q *qmp) hand(socket, f *os.File, name string) error {
	b, err := asks("getfd", map[string]any{"fdname": name})
	if err != nil {
		return err
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	given, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = given.Control(func(fd uintptr) {
		werr := conn.Write(func(to uintptr) bool { // such a short text is sent at once, or not at all
			sent = unix.Sendmsg(int(to), b, unix.UnixRights(int(fd)), nil, unix.MSG_NOSIGNAL)
			return sent != unix.EAGAIN
		})
		sent = errors.Join(sent, werr)
	})
	if err = errors.Join(err, sent); err != nil {
		return fmt.Errorf("giving QEMU a file: %w", err)
	}
	return q.answer("getfd", &struct{}{})
}

// stateName is how QEMU knows the file with the state of devices.
const stateName = "state"

// migrate saves or restores a machine, whose memory is left where it is, and waits until
// that is over.
func (q *qmp) migrate(how string, socket, state *os.File) error {
	q.migration = ""
	var abilities []map[string]any
	for _, name := range []string{"x-ignore-shared", "events"} { // the memory is left where it is, and what happens is told
		abilities = append(abilities, map[string]any{"capability": name, "state": true})
	}
	err := q.call("migrate-set-capabilities", map[string]any{"capabilities": abilities}, &struct{}{})
	if err == nil {
		err = q.hand(socket, state, stateName)
	}
	if err == nil {
		err = q.call(how, map[string]any{"uri": "fd:" + stateName}, &struct{}{})
	}
	for range maxEvents {
		switch {
		case err != nil:
			return err
		case q.migration == "completed":
			return nil
		case q.migration == "failed" || q.migration == "cancelled":
			return fmt.Errorf("QEMU says that to %s has %s", how, q.migration)
		}
		var m message
		if m, err = q.read(); err == nil && m.Event == "" {
			err = fmt.Errorf("%w: no event, and nothing was asked", errQMP)
		}
	}
	return fmt.Errorf("%w: %d events and no end", errQMP, maxEvents)
}

// answer reads the answer into out.
func (q *qmp) answer(name string, out any) error {
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
