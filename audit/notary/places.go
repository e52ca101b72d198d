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
	"path/filepath"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// A file of checkpoints holds them one behind the other, each with an empty line
// behind it. One that was cut in its last checkpoint, by a crash, ends before it.

var gap = []byte("\n\n")

// add puts c at the end of the file at path, durably.
func add(path string, c audit.Checkpoint) (err error) {
	fresh := !exists(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, end, err := last(f)
	if err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	if _, err := f.WriteAt(append(bytes.Clone(c.Note), '\n'), end); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if fresh {
		return ownfile.SyncFolder(filepath.Dir(path))
	}
	return nil
}

// newest returns the last checkpoint in the file at path, unverified; the zero
// one where there is none.
func newest(path string) (audit.Checkpoint, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return audit.Checkpoint{}, nil
	}
	if err != nil {
		return audit.Checkpoint{}, err
	}
	defer f.Close()
	note, _, err := last(f)
	if err != nil || note == nil {
		return audit.Checkpoint{}, err
	}
	c, err := audit.ParseCheckpoint(note)
	if err != nil {
		return audit.Checkpoint{}, fmt.Errorf("%w: %s: %w", audit.ErrUnsigned, path, err)
	}
	return c, nil
}

// last returns the last checkpoint that is whole, nil for none, and where it ends.
func last(f *os.File) (note []byte, end int64, err error) {
	in, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	begin := max(0, in.Size()-4*audit.MaxNote) // more than one whole, and one that was cut
	tail := make([]byte, in.Size()-begin)
	if _, err := f.ReadAt(tail, begin); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	// A checkpoint is its text, a gap, its signatures, a gap.
	whole := tail
	for {
		i := bytes.LastIndex(whole, gap)
		if i < 0 {
			return nil, begin, nil
		}
		rest := whole[:i]
		text := bytes.LastIndex(rest, gap)
		if signatures := rest[text+1:]; text >= 0 && bytes.HasPrefix(bytes.TrimLeft(signatures, "\n"), []byte("— ")) {
			start := 0
			if before := bytes.LastIndex(rest[:text], gap); before >= 0 {
				start = before + len(gap)
			}
			return append(bytes.Clone(rest[start:]), '\n'), begin + int64(i+len(gap)), nil
		}
		whole = rest
	}
}

// Claims yields the checkpoints in the file at path, for those who verify: none
// where there is no file. From is what messages call it.
func Claims(from, path string) audit.Claims {
	return func(yield func(audit.Claim, error) bool) {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(audit.Claim{}, err)
			return
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(make([]byte, 0, 4096), 2*audit.MaxNote)
		s.Split(checkpoints)
		for s.Scan() {
			if !yield(audit.Claim{From: from, Note: bytes.Clone(s.Bytes())}, nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(audit.Claim{}, fmt.Errorf("%w: %s: %w", audit.ErrUnsigned, path, err))
		}
	}
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

// readMark returns the mark, and the zero one where there is none.
func (n *Notary) readMark() (m mark, err error) {
	path := n.markPath()
	text, err := ownfile.Read(path, maxMark)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, fmt.Errorf("the high-water mark: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil || m.Note == "" || len(m.Keys) == 0 {
		return mark{}, fmt.Errorf("%w: the high-water mark %s is damaged: %w", audit.ErrUnsigned, path, errors.Join(err))
	}
	return m, nil
}

func (n *Notary) setMark(m mark) error {
	if err := ownfile.MakeFolder(n.c.State); err != nil {
		return fmt.Errorf("the high-water mark: %w; name another folder with the setting state", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := ownfile.Write(n.markPath(), append(text, '\n')); err != nil {
		return fmt.Errorf("the high-water mark: %w", err)
	}
	return nil
}
