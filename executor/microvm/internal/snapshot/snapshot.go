// Package snapshot keeps machines that were saved when they waited for an order: their
// memory, and the state of their devices. Start with [Open], and [Store.Load].
//
// A snapshot is one file, which is written under another name first and never changed.
// It ends with the SHA-256 of all before it: who loads it has read every byte of it
// before the first is used. Pages of nothing but zeros are not in it.
package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/tracon-go/tracon/bundle"
)

// Errors of a [Store].
var (
	// ErrNone: there is no snapshot of that key. Make one.
	ErrNone = errors.New("snapshot: there is none")
	// ErrTorn: the file is not what was saved: it was cut off or altered. Make it again.
	ErrTorn = errors.New("snapshot: it is not what was saved")
	// ErrFull: the snapshot is larger than all together may be. It was not kept.
	ErrFull = errors.New("snapshot: it is larger than all of them may be together")
)

// Bounds of a snapshot, in bytes.
const (
	MaxMemory = 1 << 40
	MaxState  = 16 << 20
)

const (
	magic     = "tracon/snapshot/1\n"
	pageBytes = 4 << 10
	maxHead   = 4 << 10
	runPages  = 256 // at most in one piece: 1 MiB
)

// An Info says what a snapshot is.
type Info struct {
	Key     bundle.Digest `json:"key"`     // of all that it was made with
	Memory  int64         `json:"memory"`  // bytes; of the machine
	State   int           `json:"state"`   // bytes; of its devices
	Counter int           `json:"counter"` // how many thousands the processor's counter counted in a second
}

func (i Info) valid() bool {
	return !i.Key.IsZero() && i.Memory > 0 && i.Memory <= MaxMemory && i.Memory%pageBytes == 0 && i.State >= 0 && i.State <= MaxState && i.Counter >= 0
}

// encode writes a snapshot.
func encode(w io.Writer, i Info, memory io.ReaderAt, state []byte) error {
	if i.State = len(state); !i.valid() {
		return errors.New("snapshot: it is none")
	}
	head, err := json.Marshal(i)
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<20)
	_, _ = out.WriteString(magic) // what fails is told by Flush
	_, _ = out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(head))))
	_, _ = out.Write(head)
	_, _ = out.Write(state)
	buf, zero := make([]byte, runPages*pageBytes), make([]byte, pageBytes)
	for at := int64(0); at < i.Memory; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), i.Memory-at)]
		if _, err := memory.ReadAt(buf, at); err != nil {
			return fmt.Errorf("snapshot: reading the memory: %w", err)
		}
		for from := 0; from < len(buf); {
			to := from
			for to < len(buf) && !bytes.Equal(buf[to:to+pageBytes], zero) {
				to += pageBytes
			}
			if to > from {
				_, _ = out.Write(piece(at+int64(from), to-from))
				_, _ = out.Write(buf[from:to])
			}
			from = to + pageBytes
		}
	}
	_, _ = out.Write(piece(i.Memory, 0))
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// piece is the head of a piece of memory: where it begins, and how many bytes it has.
func piece(at int64, n int) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(at)), uint32(n))
}

// A memory is where the memory of a snapshot goes.
type memory interface {
	io.WriterAt
	Truncate(size int64) error
}

// nowhere is a memory for those who only look.
type nowhere struct{}

func (nowhere) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (nowhere) Truncate(int64) error                   { return nil }

// decode reads a snapshot to its end. What it returned and wrote is worth nothing where it
// fails.
func decode(from io.Reader, into memory) (i Info, state []byte, err error) {
	r := &summed{r: bufio.NewReaderSize(from, 1<<20), sum: sha256.New()}
	if string(r.take(len(magic))) != magic {
		return i, nil, fmt.Errorf("%w: it does not begin as one", ErrTorn)
	}
	n := r.number32()
	if n > maxHead {
		return i, nil, fmt.Errorf("%w: its head has %d bytes", ErrTorn, n)
	}
	head := r.take(int(n))
	if err := json.Unmarshal(head, &i); err != nil || !i.valid() {
		return i, nil, fmt.Errorf("%w: its head is none", ErrTorn)
	}
	if as, err := json.Marshal(i); err != nil || !bytes.Equal(as, head) { // there is one way to write it
		return i, nil, fmt.Errorf("%w: its head is not as one is written", ErrTorn)
	}
	state = r.take(i.State)
	if err := into.Truncate(i.Memory); err != nil {
		return i, nil, fmt.Errorf("snapshot: %w", err)
	}
	for next := int64(0); ; {
		at, n := int64(r.number64()), int64(r.number32())
		if r.err == nil && n == 0 && at == i.Memory {
			break
		}
		if r.err != nil || n == 0 || n > runPages*pageBytes || n%pageBytes != 0 || at%pageBytes != 0 || at < next || at > i.Memory-n {
			return i, nil, fmt.Errorf("%w: a piece of its memory is none", ErrTorn)
		}
		b := r.take(int(n))
		if r.err == nil {
			if _, err := into.WriteAt(b, at); err != nil {
				return i, nil, fmt.Errorf("snapshot: %w", err)
			}
		}
		next = at + n
	}
	want := r.sum.Sum(nil)
	if got := r.take(sha256.Size); r.err != nil || !bytes.Equal(got, want) {
		return i, nil, fmt.Errorf("%w: its bytes are others", ErrTorn)
	}
	if _, err := r.r.ReadByte(); err != io.EOF {
		return i, nil, fmt.Errorf("%w: something stands behind it", ErrTorn)
	}
	return i, state, nil
}

// summed reads, and sums what was read. After its first error it returns nothing.
type summed struct {
	r   *bufio.Reader
	sum hash.Hash
	err error
}

func (s *summed) take(n int) []byte {
	if s.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, s.err = io.ReadFull(s.r, b); s.err != nil {
		return nil
	}
	s.sum.Write(b)
	return b
}

func (s *summed) number32() uint32 {
	b := append(s.take(4), make([]byte, 4)...)
	return binary.BigEndian.Uint32(b)
}

func (s *summed) number64() uint64 {
	b := append(s.take(8), make([]byte, 8)...)
	return binary.BigEndian.Uint64(b)
}

// read reads the file, which must be the snapshot of that key.
func read(f *os.File, key bundle.Digest, into memory) (Info, []byte, error) {
	i, state, err := decode(f, into)
	if err == nil && i.Key != key {
		err = fmt.Errorf("%w: it is another one", ErrTorn)
	}
	return i, state, err
}
