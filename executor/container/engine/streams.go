//go:build linux && (amd64 || arm64)

package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Streams of a container, as the interface numbers them.
const (
	streamOut = 1
	streamErr = 2
)

var errFrame = errors.New("the engine sent what is no part of a stream")

// split reads what an engine sends of a container without a terminal: parts of eight
// bytes and what they announce: the number of a stream, three zeros, and the size. It
// returns nil at an end between two parts.
func split(r io.Reader, stdout, stderr io.Writer) error {
	head, buf := make([]byte, 8), make([]byte, 32<<10)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		var to io.Writer
		switch {
		case head[1]|head[2]|head[3] != 0:
		case head[0] == streamOut:
			to = stdout
		case head[0] == streamErr:
			to = stderr
		}
		if to == nil {
			return fmt.Errorf("%w: it begins with % x", errFrame, head)
		}
		for left := int(binary.BigEndian.Uint32(head[4:])); left > 0; {
			n, err := r.Read(buf[:min(left, len(buf))])
			if n > 0 {
				if _, err := to.Write(buf[:n]); err != nil {
					return err
				}
			}
			if left -= n; err != nil && left > 0 {
				return fmt.Errorf("a part of a stream ended early: %w", err)
			}
		}
	}
}

// A sorter takes what comes of one stream of a container. Until the script starts, and
// behind the mark after it has ended, that is what the first process says; between them
// it is the script's. It is safe for concurrent use.
type sorter struct {
	mark   []byte
	script io.Writer
	told   io.Writer // nil: the first process has nothing to say here

	mu    sync.Mutex
	begun bool
	held  []byte        // the beginning of the mark, perhaps
	ended chan struct{} // closed when the mark was seen
}

// begin is called before the script can start.
func (s *sorter) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

var errTalk = errors.New("the container said what its first process never says")

func (s *sorter) Write(p []byte) (int, error) {
	rest, err := s.take(p)
	if err == nil && len(rest) > 0 {
		if s.told == nil {
			return 0, errTalk
		}
		_, err = s.told.Write(rest)
	}
	return len(p), err
}

// take gives the script's part away, and returns the other.
func (s *sorter) take(p []byte) (rest []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return p, nil
	default:
	}
	if !s.begun {
		return p, nil
	}
	all := append(s.held, p...)
	i := bytes.Index(all, s.mark)
	if i < 0 {
		i = len(all) - partly(all, s.mark)
		_, err = s.script.Write(all[:i])
		s.held = append([]byte(nil), all[i:]...)
		return nil, err
	}
	_, err = s.script.Write(all[:i])
	s.held = nil
	close(s.ended)
	return all[i+len(s.mark):], err
}

// flush gives the script what was held back, where no mark will come.
func (s *sorter) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) > 0 {
		_, _ = s.script.Write(s.held)
	}
	s.held = nil
}

// partly returns how many bytes at the end of b are the beginning of the mark.
func partly(b, mark []byte) int {
	for n := min(len(b), len(mark)-1); n > 0; n-- {
		if bytes.HasSuffix(b, mark[:n]) {
			return n
		}
	}
	return 0
}
