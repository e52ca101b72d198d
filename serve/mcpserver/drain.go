package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
)

// drain keeps the end of a client's messages from the server until every request was
// answered or taken back: a client that has said all it has to say still wants its
// answers, and the library ends with the input.
type drain struct {
	ctx context.Context

	mu       sync.Mutex
	pending  map[string]bool // requests by id, as JSON has it
	answered chan struct{}   // closed when none is pending and somebody waits
}

func newDrain(ctx context.Context) *drain { return &drain{ctx: ctx, pending: map[string]bool{}} }

// listen is the request whose answer has no end by itself: nobody waits for it.
const listen = "subscriptions/listen"

// asked takes what the client sends.
func (d *drain) asked(line []byte) {
	switch m := read(line); {
	case m.Method == "notifications/cancelled":
		d.over(m.Params.RequestID)
	case m.Method != "" && m.ID != nil && m.Method != listen:
		d.mu.Lock()
		d.pending[string(m.ID)] = true
		d.mu.Unlock()
	}
}

// told takes what the server sends.
func (d *drain) told(line []byte) {
	if m := read(line); m.Method == "" && m.ID != nil {
		d.over(m.ID)
	}
}

func (d *drain) over(id json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, string(id))
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

// A message is what there is to see of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// read returns the message of the line. What nobody can read has no answer to wait for.
func read(line []byte) (m message) {
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	return m
}
