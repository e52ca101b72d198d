package notary

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// A place of checkpoints is a file that holds them one behind the other, each with
// an empty line behind it. It is only ever added to: where a crash cut the last
// one, the next goes into a file beside it, PATH.2, then PATH.3.

var gap = []byte("\n\n")

// files returns the files of the place at path that are there, the first first.
func files(path string) (list []string) {
	for at := path; exists(at); at = path + "." + strconv.Itoa(len(list)+1) {
		list = append(list, at)
	}
	return list
}

// add puts c at the end of the place at path, durably.
func add(path string, c audit.Checkpoint) error {
	at := path
	if list := files(path); len(list) > 0 {
		at = list[len(list)-1]
		_, torn, err := last(at)
		if err != nil {
			return err
		}
		if torn {
			at = path + "." + strconv.Itoa(len(list)+1)
		}
	}
	return ownfile.Append(at, append(bytes.Clone(c.Note), '\n'))
}

// newest returns the last checkpoint in the place at path, unverified; the zero
// one where there is none.
func newest(path string) (c audit.Checkpoint, err error) {
	for _, at := range files(path) {
		note, _, err := last(at)
		if err != nil {
			return audit.Checkpoint{}, err
		}
		if note == nil {
			continue
		}
		next, err := audit.ParseCheckpoint(note)
		if err != nil {
			return audit.Checkpoint{}, fmt.Errorf("%w: %s: %w", audit.ErrUnsigned, at, err)
		}
		if next.Origin == c.Origin && next.Tree.Size < c.Tree.Size {
			return audit.Checkpoint{}, backwards(at, next.Tree.Size, c.Tree.Size)
		}
		c = next
	}
	return c, nil
}

func backwards(path string, size, before uint64) error {
	return fmt.Errorf("%w: %s has the checkpoint of %d entries behind that of %d", audit.ErrAltered, path, size, before)
}

// last returns the last checkpoint of a file that is whole, nil for none, and
// whether something stands behind it.
func last(path string) (note []byte, torn bool, err error) {
	f, err := ownfile.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	begin := max(0, in.Size()-4*audit.MaxNote) // more than one whole, and one that was cut
	tail := make([]byte, in.Size()-begin)
	if _, err := f.ReadAt(tail, begin); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	note, start, end := lastIn(tail)
	if rest := len(tail) - end; rest > audit.MaxNote+len(gap) {
		return nil, false, fmt.Errorf("%w: %s ends with %d bytes that are no checkpoint", audit.ErrUnsigned, path, rest)
	}
	// Whoever can add to the file could put an old checkpoint behind a newer one.
	for size := sizeOf(note); start > 0; {
		var before []byte
		before, start, _ = lastIn(tail[:start])
		if start == 0 && begin > 0 {
			break // cut by the beginning of what was read
		}
		if bytes.HasPrefix(before, note[:bytes.IndexByte(note, '\n')+1]) && sizeOf(before) > size {
			return nil, false, backwards(path, size, sizeOf(before))
		}
	}
	return note, end < len(tail), nil
}

// lastIn returns the last checkpoint that is whole in text, nil for none, and where
// it begins and ends.
func lastIn(text []byte) (note []byte, start, end int) {
	// A checkpoint is its text, a gap, its signatures, a gap.
	whole := text
	for {
		i := bytes.LastIndex(whole, gap)
		if i < 0 {
			return nil, 0, 0
		}
		rest := whole[:i]
		head := bytes.LastIndex(rest, gap)
		if signatures := rest[head+1:]; head >= 0 && bytes.HasPrefix(bytes.TrimLeft(signatures, "\n"), []byte("— ")) {
			start := 0
			if before := bytes.LastIndex(rest[:head], gap); before >= 0 {
				start = before + len(gap)
			}
			return append(bytes.Clone(rest[start:]), '\n'), start, i + len(gap)
		}
		whole = rest
	}
}

// sizeOf returns the size that the second line of a checkpoint tells; 0 for none.
func sizeOf(note []byte) uint64 {
	_, rest, _ := bytes.Cut(note, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(line), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

// Claims yields the checkpoints in the file at path, for those who verify: none
// where there is no file. From is what messages call it.
func Claims(from, path string) audit.Claims {
	return func(yield func(audit.Claim, error) bool) {
		f, err := os.Open(path)
		read(from, path, f, err, yield)
	}
}

// claims is Claims of a place of the log's own.
func claims(from, path string) audit.Claims {
	return func(yield func(audit.Claim, error) bool) {
		for _, at := range files(path) {
			f, err := ownfile.Open(at, os.O_RDONLY)
			if !read(from, at, f, err, yield) {
				return
			}
		}
	}
}

// read yields what is in f, and reports whether more is wanted.
func read(from, path string, f *os.File, err error, yield func(audit.Claim, error) bool) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return yield(audit.Claim{}, err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 0, 4096), 2*audit.MaxNote)
	s.Split(checkpoints)
	for s.Scan() {
		if !yield(audit.Claim{From: from, Note: bytes.Clone(s.Bytes())}, nil) {
			return false
		}
	}
	if err := s.Err(); err != nil {
		return yield(audit.Claim{}, fmt.Errorf("%w: %s: %w", audit.ErrUnsigned, path, err))
	}
	return true
}

// checkpoints splits a file. What is not whole at its end is left out.
func checkpoints(data []byte, atEOF bool) (advance int, token []byte, err error) {
	text := bytes.Index(data, gap)
	if text < 0 {
		return end(data, atEOF)
	}
	signatures := bytes.Index(data[text+len(gap):], gap)
	if signatures < 0 {
		return end(data, atEOF)
	}
	n := text + len(gap) + signatures
	return n + len(gap), data[:n+1], nil
}

func end(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// A mark is the high-water mark: the last checkpoint, and what is needed to go on
// from its tree.
type mark struct {
	Data string            `json:"data"` // the folder that it is about, for people
	Keys []audit.PublicKey `json:"keys"`
	Note string            `json:"note"`
	Edge []audit.Hash      `json:"edge"`
}

const maxMark = 256 << 10

func (m mark) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// readMark returns the mark, and the zero one where there is none. Two readers see
// one thing in it: what setMark writes is the only text of a mark.
func (n *Notary) readMark() (m mark, err error) {
	path := n.markPath()
	text, err := ownfile.Read(path, maxMark)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return mark{}, nil
	case errors.Is(err, ownfile.ErrKind):
		return mark{}, fmt.Errorf("%w: the high-water mark: %w", audit.ErrUnsigned, err)
	case err != nil:
		return mark{}, n.noState(err)
	}
	err = json.Unmarshal(text, &m)
	if again, _ := m.encode(); err != nil || m.Note == "" || len(m.Keys) == 0 || !bytes.Equal(again, text) {
		return mark{}, fmt.Errorf("%w: the high-water mark %s is damaged: %w", audit.ErrUnsigned, path, errors.Join(err))
	}
	return m, nil
}

func (n *Notary) setMark(m mark) error {
	if err := ownfile.MakeFolder(n.c.State); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	return ownfile.Write(n.markPath(), text)
}
