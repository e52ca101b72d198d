package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// linesIn hands the library the client's messages, a line each. The library ends with the
// first line that is none; this answers it with an error, and goes on with the next.
type linesIn struct {
	io.Closer
	from *bufio.Reader
	out  *linesOut
	d    *drain
	max  int    // bytes of a line
	line []byte // that was not handed on yet
}

func newLinesIn(in io.ReadCloser, out *linesOut, d *drain, max int) *linesIn {
	return &linesIn{Closer: in, from: bufio.NewReader(in), out: out, d: d, max: max}
}

// Read waits at the end of the input until the client has its answers.
func (l *linesIn) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		line, whole, err := l.next()
		if m, wrong := l.message(line, whole); wrong != nil {
			l.out.refuse(wrong)
		} else if m != nil {
			l.d.asked(m)
			l.line = append(line, '\n')
			break // an error comes again
		}
		if err == io.EOF {
			l.d.wait()
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// next returns the next line without its end and the blanks around it. Of one that is
// longer than max nothing is kept, and it is not whole.
func (l *linesIn) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.from.ReadSlice('\n')
		if len(line)+len(part) > l.max+len("\r\n") {
			line, whole = nil, false
		}
		if whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			line = bytes.TrimSpace(line)
			return line, whole && len(line) <= l.max, err
		}
	}
}

// message reads the line, or says why the library must not see it; an empty line is
// neither. Batches, which one version of the protocol had, are refused as they are over HTTP.
func (l *linesIn) message(line []byte, whole bool) (jsonrpc.Message, *jsonrpc.Error) {
	if !whole {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a message has %d bytes at most", l.max)}
	}
	if len(line) == 0 {
		return nil, nil
	}
	canonical, err := strictjson.Canonical(line, strictjson.Limits{})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a message is one JSON object in one line, with no name twice in it"}
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "this is no message of JSON-RPC 2.0; batches are not taken"}
	}
	if !exact(canonical) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "an id is a text, or a whole number of 53 bits at most"}
	}
	return m, nil
}

// exact reports whether the library keeps the id of the message, if it has one, as it is:
// it cuts off what is not whole, and two requests would have one id.
func exact(message []byte) bool {
	var named map[string]json.RawMessage
	if json.Unmarshal(message, &named) != nil {
		return false
	}
	var id any
	if raw, ok := named["id"]; ok && json.Unmarshal(raw, &id) != nil {
		return false
	}
	n, ok := id.(float64)
	return !ok || math.Abs(n) < 1<<53 && n == math.Trunc(n)
}

// linesOut is where the library's messages go, and between them the answers to lines
// that it never saw.
type linesOut struct {
	io.WriteCloser
	d *drain

	mu   sync.Mutex
	part []byte // of a message whose end is still to come
}

// Write takes messages, or parts of one.
func (l *linesOut) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.WriteCloser.Write(p)
	rest := p[:n]
	for {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		l.part = append(l.part, line...)
		if !ended {
			return n, err
		}
		l.d.told(l.part)
		l.part, rest = nil, after
	}
}

// refuse answers a line that has no id to answer to. The library writes a whole message
// at once, so there is none to interrupt.
func (l *linesOut) refuse(e *jsonrpc.Error) {
	b, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      *int           `json:"id"` // null, as JSON-RPC has it
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, e})
	if err != nil {
		return // numbers and texts
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.WriteCloser.Write(append(b, '\n')) // who does not listen hears nothing
}
