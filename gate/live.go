package gate

import (
	"sync"
	"sync/atomic"
)

// A Stream is one of a script's two output streams.
type Stream int8

// The streams.
const (
	Stdout Stream = iota + 1
	Stderr
)

// A Chunk is a piece of output, as it was written: any bytes.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// A Live carries output while the script runs, to whoever made the call. It is
// bounded and lossy, and never makes the script wait: the outcome alone is the
// truth. The nil Live takes everything and shows nothing. It is safe for
// concurrent use.
type Live struct {
	chunks  chan Chunk
	dropped atomic.Int64

	mu     sync.RWMutex // held for reading while a chunk is sent, for writing to close
	closed bool
}

// DefaultLiveChunks is how many chunks a Live holds when nobody reads: 256.
const DefaultLiveChunks = 256

// NewLive returns a Live that holds at most n chunks; zero or less means [DefaultLiveChunks].
func NewLive(n int) *Live {
	if n <= 0 {
		n = DefaultLiveChunks
	}
	return &Live{chunks: make(chan Chunk, n)}
}

// Chunks returns what to range over. It ends when the run has; that of the nil
// Live has ended.
func (l *Live) Chunks() <-chan Chunk {
	if l == nil {
		none := make(chan Chunk)
		close(none)
		return none
	}
	return l.chunks
}

// Dropped returns how many bytes nobody was there to take.
func (l *Live) Dropped() int64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

// Send offers a copy of data and never blocks. After Close it does nothing.
func (l *Live) Send(stream Stream, data []byte) {
	if l == nil || len(data) == 0 {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	select {
	case l.chunks <- Chunk{stream, append([]byte(nil), data...)}:
	default:
		l.dropped.Add(int64(len(data)))
	}
}

// Close ends Chunks. The runner calls it when the call has its answer; it may
// be called again.
func (l *Live) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.chunks)
	}
}
