package mcpserver

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// drain keeps the end of a client's messages from the server until every request was
// answered or taken back: a client that has said all it has to say still wants its
// answers, and the library ends with the input.
type drain struct {
	ctx context.Context

	mu       sync.Mutex
	pending  map[jsonrpc.ID]bool // requests, by the id that the library has read
	answered chan struct{}       // closed when none is pending and somebody waits
}

func newDrain(ctx context.Context) *drain { return &drain{ctx: ctx, pending: map[jsonrpc.ID]bool{}} }

// listen is the request whose answer has no end by itself: nobody waits for it.
const listen = "subscriptions/listen"

// asked takes what the client sends.
func (d *drain) asked(m jsonrpc.Message) {
	switch r, _ := m.(*jsonrpc.Request); {
	case r == nil: // an answer
	case r.Method == "notifications/cancelled":
		d.over(takenBack(r.Params))
	case r.IsCall() && r.Method != listen:
		d.mu.Lock()
		d.pending[r.ID] = true
		d.mu.Unlock()
	}
}

// told takes what the server sends.
func (d *drain) told(line []byte) {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return // it answers nothing
	}
	if a, ok := m.(*jsonrpc.Response); ok {
		d.over(a.ID)
	}
}

func (d *drain) over(id jsonrpc.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, id)
	if len(d.pending) == 0 && d.answered != nil {
		close(d.answered)
		d.answered = nil
	}
}

func (d *drain) wait() {
	d.mu.Lock()
	if len(d.pending) == 0 {
		d.mu.Unlock()
		return
	}
	if d.answered == nil {
		d.answered = make(chan struct{})
	}
	answered := d.answered
	d.mu.Unlock()
	select {
	case <-answered:
	case <-d.ctx.Done():
	}
}

// takenBack is the request that a notice of the client's takes back; zero: none. Its
// names are exact, as the library has them.
func takenBack(params json.RawMessage) jsonrpc.ID {
	var named map[string]any
	if json.Unmarshal(params, &named) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(named["requestId"])
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}
