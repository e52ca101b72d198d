//go:build linux && (amd64 || arm64)

package engine

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// A talk is that with the first process of a container, over what the engine attached
// to its streams. Its methods are called one after the other, but for close.
type talk struct {
	conn           net.Conn
	answers        *inbox
	stdout, stderr *sorter
	over           chan struct{} // closed when the engine sends no more
	fault          error         // why; nil: the container has ended. It is set before over is closed
	asked, heard   uint32        // answers
}

// markSize is that of the mark behind a script's output. Nobody guesses it.
const markSize = 32

// newTalk begins to read. Stdout and stderr get what the script writes.
func newTalk(conn net.Conn, from io.Reader, stdout, stderr io.Writer) *talk {
	mark := make([]byte, markSize)
	_, _ = rand.Read(mark) // never fails
	answers := newInbox()
	t := &talk{
		conn: conn, answers: answers, over: make(chan struct{}),
		stdout: &sorter{mark: mark, script: stdout, told: answers, ended: make(chan struct{})},
		stderr: &sorter{mark: mark, script: stderr, ended: make(chan struct{})},
	}
	go func() {
		defer close(t.over)
		t.fault = split(from, t.stdout, t.stderr)
		answers.end(errors.Join(io.ErrUnexpectedEOF, t.fault))
		t.stdout.flush()
		t.stderr.flush()
	}()
	return t
}

// close ends the talk, and returns when nothing is read any more.
func (t *talk) close() {
	t.conn.Close()
	<-t.over
}

// say sends a message.
func (t *talk) say(m *message) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	_, err = t.conn.Write(b)
	return err
}

// answer has a message tell the host these pieces, of so many bytes each. A negative
// number of bytes is none.
func (t *talk) answer(m *message, pieces ...[2]arg) {
	t.asked++
	head := binary.LittleEndian.AppendUint64([]byte{'R', 0, 0, 0, 0, 0, 0, 0}, uint64(t.asked))
	m.must(unix.SYS_WRITE, 0, num(1), m.bytes(head), num(len(head)))
	for _, p := range pieces {
		m.try(unix.SYS_WRITE, 0, num(1), p[0], p[1])
	}
}

// hear reads the beginning of the next answer, and so many bytes of it.
func (t *talk) hear(n int) ([]byte, error) {
	var head [16]byte
	if _, err := io.ReadFull(t.answers, head[:]); err != nil {
		return nil, fmt.Errorf("the first process of the container said nothing: %w", err)
	}
	t.heard++
	value := binary.LittleEndian.Uint64(head[8:])
	switch binary.LittleEndian.Uint32(head[:]) {
	case 'R':
		if value == uint64(t.heard) {
			return t.more(n)
		}
	case 'F':
		return nil, fmt.Errorf("the first process of the container could not take step %d: %w", binary.LittleEndian.Uint32(head[4:])/recordSize, syscall.Errno(-int64(value)))
	}
	return nil, errTalk
}

// more reads so many bytes more of an answer.
func (t *talk) more(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(t.answers, b)
	return b, err
}

// result returns the number in an answer's part of eight bytes.
func result(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// Sizes of what is read of a file of the kernel's: it gives a page or so at a time.
const (
	pieces    = 16
	pieceSize = 8 << 10
)

// Slots. The first is none.
const (
	_         slot = iota
	slotA          // for one call and the next
	slotB          //
	slotMade       // how many bytes each piece had; as many slots as there are pieces
	slotStdin = slotMade + pieces + iota
	slotOOM   // the files that count processes killed for want of memory: two
	_
	slotAdj  // the file that says how soon a process is killed for that
	slotPipe // two descriptors, of four bytes each
	slotPID  // of the script
	slotExec // why the interpreter could not be started
	slotEnd  // how the script ended: two slots
	_
	slotOpen // descriptors of nodes, from here
)

// read has a message read the file and tell what is in it; see heardText.
func (t *talk) read(m *message, name string) {
	m.try(unix.SYS_OPENAT, slotA, num(-1), m.text(name), num(unix.O_RDONLY|unix.O_CLOEXEC), num(0))
	t.readOpen(m, slotA)
	m.try(unix.SYS_CLOSE, 0, of(slotA))
}

func (t *talk) readOpen(m *message, fd slot) {
	tell := [][2]arg{{at(slotMade), num(8 * pieces)}}
	for i := range pieces {
		m.try(unix.SYS_READ, slotMade+slot(i), of(fd), inScratch(i*pieceSize), num(pieceSize))
		tell = append(tell, [2]arg{inScratch(i * pieceSize), of(slotMade + slot(i))})
	}
	t.answer(m, tell...)
}

// heardText returns what was read of a file.
func (t *talk) heardText() (string, error) {
	b, err := t.hear(8 * pieces)
	if err != nil {
		return "", err
	}
	size := int64(0)
	for i := range pieces {
		n := result(b[8*i:])
		switch {
		case n < 0 && (i == 0 || err != nil):
			err = syscall.Errno(-n)
		case n < 0 || n > pieceSize:
			return "", errTalk
		case n > 0 && i == pieces-1:
			err = errors.New("it is too large")
		}
		size += max(n, 0)
	}
	text, moreErr := t.more(int(size))
	return string(text), errors.Join(err, moreErr)
}
