package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
)

// drain keeps the end of a client's messages from the server until every request was
// answered or taken back: a client that has said all it has to say still wants its
// answers, and the library ends with the input. It reads lines, one message each.
type drain struct {
	ctx context.Context

	mu       sync.Mutex
	pending  map[string]bool // requests by id, as JSON has it
	answered chan struct{}   // closed when none is pending and somebody waits
}

func newDrain(ctx context.Context) *drain { return &drain{ctx: ctx, pending: map[string]bool{}} }

// asked takes what the client sends.
func (d *drain) asked(line []byte) {
	for _, m := range messages(line) {
		switch {
		case m.Method == "notifications/cancelled":
			d.over(m.Params.RequestID)
		case m.Method != "" && m.ID != nil:
			d.mu.Lock()
			d.pending[string(m.ID)] = true
			d.mu.Unlock()
		}
	}
}

// told takes what the server sends.
func (d *drain) told(line []byte) {
	for _, m := range messages(line) {
		if m.Method == "" && m.ID != nil {
			d.over(m.ID)
		}
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

// messages returns those of the line, one or a batch. What the server cannot read has no
// answer to wait for.
func messages(line []byte) (batch []message) {
	if json.Unmarshal(line, &batch) == nil {
		return batch
	}
	var one message
	if json.Unmarshal(line, &one) != nil {
		return nil
	}
	return []message{one}
}

// lines splits what passes into lines. One that is too long is not looked at: the server
// ends the connection because of it.
type lines struct{ part []byte }

func (l *lines) pass(b []byte, each func([]byte)) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if len(l.part)+len(b) <= maxLine {
				l.part = append(l.part, b...)
			}
			return
		}
		each(append(l.part, b[:end]...))
		l.part, b = nil, b[end+1:]
	}
}

type drainedReader struct {
	io.ReadCloser
	d *drain
	l lines
}

func (r *drainedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.l.pass(p[:n], r.d.asked)
	if err == io.EOF {
		r.d.asked(r.l.part) // a last line without its end
		r.l.part = nil
		r.d.wait()
	}
	return n, err
}

type drainedWriter struct {
	io.WriteCloser
	d *drain
	l lines
}

func (w *drainedWriter) Write(p []byte) (int, error) {
	n, err := w.WriteCloser.Write(p)
	w.l.pass(p[:n], w.d.told)
	return n, err
}
