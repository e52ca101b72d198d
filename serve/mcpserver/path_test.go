package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/toolcall"
	"github.com/tracon-go/tracon/toolset"
)

// The whole path of a client: list, load, read, run with arguments and a file in and out,
// by its content and by the handle of what an earlier script wrote, a refusal that the next
// call puts right, and a script that does not end in time (R23).
func TestWholePath(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	path(t, connect(t, url, "acme", nil))
}

func path(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if got := toolNames(t, s); !slices.Contains(got, toolset.RunSkillScript) || len(got) != 4 {
		t.Errorf("the tools are %q", got)
	}
	if _, text := call(t, s, toolset.ListSkills, nil); !strings.Contains(text, `"shout"`) {
		t.Errorf("%s", text)
	}
	if _, text := call(t, s, toolset.LoadSkill, object{"skill": "shout"}); !strings.Contains(text, "Run scripts/shout.sh") {
		t.Errorf("%s", text)
	}
	if _, text := call(t, s, toolset.ReadSkillResource, object{"skill": "tales", "path": "SKILL.md"}); !strings.Contains(text, "Once upon") {
		t.Errorf("%s", text)
	}
	refused, text := call(t, s, toolset.RunSkillScript, object{"skill": "shout", "script": "shout.sh"})
	if !refused.IsError || !strings.Contains(text, `"scripts/shout.sh"`) {
		t.Errorf("%s", text)
	}
	r, text := call(t, s, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/shout.sh", "arguments": []string{"hi"},
		"inputs": []object{{"name": "in.txt", "text": "hello"}}})
	if r.IsError || !strings.Contains(text, `"words: hi\n"`) {
		t.Fatalf("%s", text)
	}
	file := r.Content[1].(*mcp.EmbeddedResource).Resource
	if file.Text != "HELLO" || file.MIMEType != "text/plain" || !strings.Contains(file.URI, "out.txt") {
		t.Errorf("the file is %+v", file)
	}
	var told struct {
		ExitCode *int
		TimedOut bool
		Outputs  []struct{ Handle string }
	}
	structured(t, r, &told)
	if told.ExitCode == nil || *told.ExitCode != 0 || len(told.Outputs) != 1 {
		t.Fatalf("%+v", told)
	}
	r, text = call(t, s, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/shout.sh",
		"inputs": []object{{"name": "in.txt", "handle": told.Outputs[0].Handle}}})
	if len(r.Content) != 2 || r.Content[1].(*mcp.EmbeddedResource).Resource.Text != "HELLO" {
		t.Errorf("with a handle: %s", text)
	}
	r, text = call(t, s, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/late.sh"})
	structured(t, r, &told)
	if !r.IsError || !told.TimedOut || told.ExitCode != nil || !strings.Contains(text, "did not end in time") {
		t.Errorf("out of time: %+v, %s", told, text)
	}
}

// structured reads the structured answer into v, whose fields are reset first.
func structured[T any](t *testing.T, r *mcp.CallToolResult, v *T) {
	t.Helper()
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	*v = *new(T)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// The same over a pair of streams, as a client starts it on a laptop.
func TestStdio(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpserver.Stdio(t.Context(), in, out, principals["acme"], h.Tools, "test", slog.New(slog.DiscardHandler))
	}()
	progress := make(chan *mcp.ProgressNotificationParams, 100)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, hearing(progress))
	s, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	path(t, s)
	cancels(t, h, s, progress)
	s.Close()
	<-ended
}

// Live output reaches the client as progress, and says what it is; a cancellation of the
// protocol ends the run.
func TestProgressAndCancel(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	progress := make(chan *mcp.ProgressNotificationParams, 100)
	cancels(t, h, connect(t, url, "acme", hearing(progress)), progress)
}

func hearing(progress chan<- *mcp.ProgressNotificationParams) *mcp.ClientOptions {
	return &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		progress <- r.Params
	}}
}

// cancels starts a script, takes the call back when it has begun, and waits for the end
// of the run.
func cancels(t *testing.T, h *toolcase.House, s *mcp.ClientSession, progress <-chan *mcp.ProgressNotificationParams) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		p := &mcp.CallToolParams{Name: toolset.RunSkillScript, Arguments: object{"skill": "shout", "script": "scripts/slow.sh"}}
		p.SetProgressToken("token")
		_, err := s.CallTool(ctx, p)
		ended <- err
	}()
	first := <-progress
	if !strings.Contains(first.Message, `"begun\n"`) || !strings.Contains(first.Message, "data that the script wrote") {
		t.Errorf("%q", first.Message)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	// The run has its ending only when the script is gone.
	for {
		calls, err := h.Store.Calls(t.Context(), "acme", toolcall.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(calls) > 0 && calls[0].Script == "scripts/slow.sh" {
			if calls[0].Ending != "cancelled" {
				t.Errorf("it ended %q", calls[0].Ending)
			}
			return
		}
		if _, err := s.ListTools(t.Context(), nil); err != nil { // a way to wait that is not the clock's
			t.Fatal(err)
		}
	}
}
