package mcpserver

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// through is what the library sees of the input, and what the client is answered.
func through(t *testing.T, input string, max int) (seen, answers string) {
	t.Helper()
	out := &buffer{}
	d := newDrain(t.Context())
	to := &linesOut{WriteCloser: out, d: d}
	b, err := io.ReadAll(answering{newLinesIn(io.NopCloser(strings.NewReader(input)), to, d, max), d})
	if err != nil {
		t.Fatal(err)
	}
	return string(b), out.String()
}

// answering answers each request at once, so that the end does not wait.
type answering struct {
	io.Reader
	d *drain
}

func (a answering) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.d.mu.Lock()
	clear(a.d.pending)
	a.d.mu.Unlock()
	return n, err
}

// B10: a line that is no message is answered by an error with the id null, and the next
// one is read; one that is too long too, of which nothing is kept.
func TestLinesThatAreNoMessages(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, tc := range map[string]struct{ in, code string }{
		"no JSON":       {"hello", "-32700"},
		"half":          {ping[:20], "-32700"},
		"a name twice":  {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, "-32700"},
		"no UTF-8":      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700"},
		"two in a line": {ping + ping, "-32700"},
		"a text":        {`"ping"`, "-32600"},
		"an object":     {`{"a":1}`, "-32600"},
		"a batch":       {"[" + ping + "]", "-32600"},
		"old":           {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "-32600"},
		"a part of one": {`{"jsonrpc":"2.0","id":2.5,"method":"ping"}`, "-32600"},
		"53 bits more":  {`{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, "-32600"},
		"too long":      {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 10_000) + `"}`, "-32600"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n", "\n\n"} {
				seen, answers := through(t, ping+end+tc.in+end+ping+end, 1000)
				if seen != ping+"\n"+ping+"\n" {
					t.Errorf("the library sees %q", seen)
				}
				if !strings.HasPrefix(answers, `{"jsonrpc":"2.0","id":null,"error":{"code":`+tc.code) || strings.Count(answers, "\n") != 1 {
					t.Errorf("the client is answered %q", answers)
				}
			}
			if seen, answers := through(t, tc.in, 1000); seen != "" || !strings.Contains(answers, tc.code) {
				t.Errorf("as the last line, without an end: %q, %q", seen, answers)
			}
		})
	}
}

// A line of just as many bytes as one may have passes, whatever pieces it comes in.
func TestLongestLine(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if seen, answers := through(t, ping+"\n", len(ping)); seen != ping+"\n" || answers != "" {
		t.Errorf("%q, %q", seen, answers)
	}
	if seen, answers := through(t, ping+"\n", len(ping)-1); seen != "" || answers == "" {
		t.Errorf("%q, %q", seen, answers)
	}
}

// Whatever comes, the library sees whole messages alone, and each other line has an answer.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "x", "{}\n", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "\n\r\n", "[\n]", strings.Repeat("a", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		seen, answers := through(t, s, 200)
		lines := 0
		for line := range strings.SplitSeq(s, "\n") {
			if strings.TrimSpace(line) != "" {
				lines++
			} else if len(line) > 200 {
				return // blanks alone may be too many, or none
			}
		}
		if got := strings.Count(seen, "\n") + strings.Count(answers, "\n"); got != lines {
			t.Errorf("%d lines of %d were taken or answered: %q, %q", got, lines, seen, answers)
		}
	})
}
