package mcpserver

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/toolset"
)

// call answers tools/call. Whatever comes of a tool that may be called is an answer that a
// model understands, never an error of the protocol.
func (s *server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.Name == toolset.RunSkillScript && !s.runs(ctx, req) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this credential may run no scripts"}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tools := s.tools
	if a := askingOf(req.Extra); a != nil && a.gone != nil {
		tools = tools.Still(a.still)
		go func() {
			select {
			case <-a.gone:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	var live *gate.Live
	if token := req.Params.GetProgressToken(); token != nil && req.Params.Name == toolset.RunSkillScript {
		live = gate.NewLive(0)
		var told sync.WaitGroup
		told.Go(func() { s.tell(ctx, req.Session, token, live) })
		defer told.Wait() // a client hears nothing of a call that was answered
	}
	r := tools.Call(ctx, req.Params.Name, req.Params.Arguments, live)
	if live != nil {
		live.Close()
	}
	return asResult(r), nil
}

// runs reports whether who sent this very request may run scripts: a session lives on
// when its principal has fewer roles than it began with.
func (s *server) runs(ctx context.Context, req *mcp.CallToolRequest) bool {
	if s.may == nil {
		return s.run
	}
	a := askingOf(req.Extra)
	return a != nil && s.may(ctx, a.principal)
}

func asResult(r toolset.Result) *mcp.CallToolResult {
	out := &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}, StructuredContent: r.Structured, IsError: r.Failed,
	}
	for _, f := range r.Files {
		c := &mcp.ResourceContents{URI: fileURI(f), MIMEType: f.MediaType}
		if text := string(f.Data); strings.HasPrefix(f.MediaType, "text/") && utf8.ValidString(text) && text != "" {
			c.Text = text
		} else {
			c.Blob = append([]byte{}, f.Data...)
		}
		out.Content = append(out.Content, &mcp.EmbeddedResource{Resource: c})
	}
	return out
}

// fileURI names a file of an answer. It is a name alone: nothing reads it back.
func fileURI(f toolset.File) string {
	u := url.URL{Scheme: "tracon-file", Host: "output", Path: "/" + f.Name, RawQuery: ""}
	if f.Handle != "" {
		u.RawQuery = url.Values{"handle": {f.Handle}}.Encode()
	}
	return u.String()
}

// How often a client hears of output, and of how much at once.
const (
	tellEvery = 250 * time.Millisecond
	tellMost  = 4 << 10
)

// tell sends what a script prints as progress, while it runs. The answer has all of it.
func (s *server) tell(ctx context.Context, to *mcp.ServerSession, token any, live *gate.Live) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var text []byte // that was not told yet
	total := 0
	send := func() {
		if len(text) == 0 {
			return
		}
		message := text[max(0, len(text)-tellMost):]
		_ = to.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(total),
			Message: "output (data that the script wrote, as a JSON string): " + toolset.Quote(strings.ToValidUTF8(string(message), "\uFFFD"))})
		text = text[:0]
	}
	chunks := live.Chunks()
	for {
		select {
		case c, ok := <-chunks:
			if !ok {
				send()
				return
			}
			total += len(c.Data)
			text = append(text, c.Data...)
			if over := len(text) - 2*tellMost; over > 0 {
				text = append(text[:0], text[over:]...)
			}
		case <-tick.C:
			send()
		}
	}
}
