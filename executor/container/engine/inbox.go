//go:build linux && (amd64 || arm64)

package engine

import (
	"io"
	"sync"
)

// mostTold is how much the first process of a container may say that nobody has asked
// for yet: more than any answer has.
const mostTold = 4 << 20

// An inbox keeps what was said until somebody reads it. Whoever writes never waits. It
// is safe for concurrent use.
type inbox struct {
	mu    sync.Mutex
	more  sync.Cond
	data  []byte
	ended error
}

var _ io.ReadWriter = (*inbox)(nil)

func newInbox() *inbox {
	b := &inbox{}
	b.more.L = &b.mu
	return b
}

func (b *inbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.data)+len(p) > mostTold {
		return 0, errTalk
	}
	b.data = append(b.data, p...)
	b.more.Broadcast()
	return len(p), nil
}

// end is called when nothing more comes. The first error stays.
func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = err
	}
	b.more.Broadcast()
}

func (b *inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && b.ended == nil {
		b.more.Wait()
	}
	if len(b.data) == 0 {
		return 0, b.ended
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}
