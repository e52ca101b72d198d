package fleet

import (
	"bytes"
	"errors"
	"testing"
)

// R30, B10: a run within its begin is there, and is no larger than what is handed over at
// once.
func TestReadBegin(t *testing.T) {
	sent := begin{"s", "r", "h"}
	for _, tt := range []struct {
		size int
		want error
	}{{0, ErrMessage}, {1, nil}, {chunkSize, nil}, {chunkSize + 1, ErrMessage}} {
		m := sent.message("at", make([]byte, tt.size))
		got, whole, err := readBegin(m.Header, m.Data)
		if !errors.Is(err, tt.want) || err == nil && (got != sent || !bytes.Equal(whole, m.Data)) {
			t.Errorf("a run of %d bytes: got %+v, %d bytes, %v; want the error %v", tt.size, got, len(whole), err, tt.want)
		}
	}
	m := sent.message("at", nil)
	if got, whole, err := readBegin(m.Header, m.Data); got != sent || whole != nil || err != nil {
		t.Errorf("one that has no run: got %+v, %d bytes, %v", got, len(whole), err)
	}
}

// R21: what is handed over when the run has begun is refused, and changes nothing.
func TestAddToWhatBegan(t *testing.T) {
	s := &session{m: &Member{}, state: running}
	if got, err := s.add(chunk{part: partRun, size: 1, data: []byte("x")}); err == nil || got != nil || s.parts != nil {
		t.Errorf("got %q, %v, %v", got, err, s.parts)
	}
}
