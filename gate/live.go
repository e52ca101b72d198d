package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/internal/mask"
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
	Lost   int64 // bytes of the stream between the chunk before it and this one
}

// A Live carries output while the script runs, to whoever made the call. It is
// bounded and lossy, and never makes the script wait: the outcome alone is the
// truth. It tells too how far the call has come, and that is never lost. The nil
// Live takes everything and shows nothing. It is safe for concurrent use.
type Live struct {
	chunks   chan Chunk
	dropped  atomic.Int64
	admitted chan struct{}
	started  chan struct{}
	at       time.Time // set before admitted is closed
	admit    sync.Once
	start    sync.Once

	mu     sync.RWMutex // held for reading while a chunk is sent, for writing to close
	closed bool

	order  sync.Mutex              // held while a chunk is masked and sent
	masker *mask.Masker            // nil: nothing is masked
	masks  map[Stream]*mask.Stream // of masker
	hidden map[Stream]int          // bytes behind a gap that may be the end of a secret
	lost   map[Stream]int64        // since the last chunk
}

// DefaultLiveChunks is how many chunks a Live holds when nobody reads: 256.
const DefaultLiveChunks = 256

// NewLive returns a Live that holds at most n chunks; zero or less means [DefaultLiveChunks].
func NewLive(n int) *Live {
	if n <= 0 {
		n = DefaultLiveChunks
	}
	return &Live{chunks: make(chan Chunk, n), admitted: make(chan struct{}), started: make(chan struct{}),
		hidden: map[Stream]int{}, lost: map[Stream]int64{}}
}

// Admitted is closed when every gate has said yes and the admission stands in the
// log. That of a refused call, and of the nil Live, never is.
func (l *Live) Admitted() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.admitted
}

// AdmittedAt returns when Admitted was closed, in UTC and whole microseconds; zero
// until then, and of the nil Live.
func (l *Live) AdmittedAt() time.Time {
	if l == nil {
		return time.Time{}
	}
	select {
	case <-l.admitted:
		return l.at
	default:
		return time.Time{}
	}
}

// Started is closed when the call has its slot and goes to the executor. That of
// the nil Live never is.
func (l *Live) Started() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.started
}

// pass closes Admitted. From then on m masks both streams.
func (l *Live) pass(m *mask.Masker) {
	if l != nil {
		l.admit.Do(func() {
			l.order.Lock()
			l.masker, l.masks = m, map[Stream]*mask.Stream{Stdout: m.Stream(), Stderr: m.Stream()}
			l.order.Unlock()
			l.at = time.Now().UTC().Truncate(time.Microsecond)
			close(l.admitted)
		})
	}
}

// Start closes Started. The runner calls it; it may be called again.
func (l *Live) Start() {
	if l != nil {
		l.start.Do(func() { close(l.started) })
	}
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

// Dropped returns how many bytes nobody was there to take, or were lost on their way.
func (l *Live) Dropped() int64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

// Lost tells of n bytes that did not come, of this stream or of the other one: an
// executor that has a script run elsewhere calls it, and they are among those of
// [Live.Dropped]. Where secrets are masked, one may have been in the gap: what may be its
// beginning, at the end of what came, is masked, and of what comes next as much is
// dropped as may be its end (O09). Zero or less is no gap.
func (l *Live) Lost(stream Stream, n int64) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.dropped.Add(n)
	if l.closed {
		return
	}
	l.order.Lock()
	defer l.order.Unlock()
	for s, m := range l.masks {
		l.offer(s, m.Close(true))
		l.masks[s] = l.masker.Stream()
		l.hidden[s] = l.masker.Longest() - 1
	}
	l.lost[stream] += n
}

// Send offers a copy of data and never blocks. After Close it does nothing. Of a call
// that was admitted secrets are masked (see [Request.Mask]), and what may be the
// beginning of one is held back until what follows, or Close, tells.
func (l *Live) Send(stream Stream, data []byte) {
	if l == nil || len(data) == 0 {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	l.order.Lock()
	defer l.order.Unlock()
	if n := min(l.hidden[stream], len(data)); n > 0 {
		l.hidden[stream] -= n
		l.drop(stream, n)
		data = data[n:]
	}
	if m := l.masks[stream]; m != nil {
		data = m.Write(data)
	}
	l.offer(stream, data)
}

// offer sends data to whoever reads. The caller holds order, or is alone.
func (l *Live) offer(stream Stream, data []byte) {
	if len(data) == 0 {
		return
	}
	select {
	case l.chunks <- Chunk{stream, append([]byte(nil), data...), l.lost[stream]}:
		l.lost[stream] = 0
	default:
		l.drop(stream, len(data))
	}
}

func (l *Live) drop(stream Stream, n int) {
	l.dropped.Add(int64(n))
	l.lost[stream] += int64(n)
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
		for _, s := range []Stream{Stdout, Stderr} {
			if m := l.masks[s]; m != nil {
				l.offer(s, m.Close(true)) // a stream may have been cut at its limit
			}
		}
		close(l.chunks)
	}
}
