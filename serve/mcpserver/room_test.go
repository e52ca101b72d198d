package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
)

// nobody is a runner for runs of which the room alone is of interest.
type nobody struct{}

func (nobody) Run(context.Context, gate.Call) (tracon.Outcome, error) {
	return tracon.Outcome{}, errors.New("nobody runs anything here")
}

// A desk is an endpoint that takes the room of its runs.
type desk struct {
	*testing.T
	*mcpserver.Handler
	runs *runs.Runs
	each int64
}

// newDesk returns one over the executor, where calls of a tenant have each bytes of room.
func newDesk(t *testing.T, root string, each int64, exec executor.Func) *desk {
	t.Helper()
	h := toolcase.Over(t, root, exec, nil)
	h.Grant("acme", "")
	h.Grant("other", "")
	r, err := runs.New(nobody{}, runs.Limits{CallBytes: 4 * each, CallBytesPerTenant: each})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Authenticate: authenticate, Runs: r, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handler.Close() })
	return &desk{t, handler, r, each}
}

// send sends the request over w, in a session of its own.
func (d *desk) send(w http.ResponseWriter, credential, method string, params object) {
	begun := httptest.NewRecorder()
	d.ServeHTTP(begun, d.request(credential, "", initialize))
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 2, "method": method, "params": params})
	if err != nil {
		d.Error(err)
	}
	d.ServeHTTP(w, d.request(credential, begun.Header().Get("Mcp-Session-Id"), string(body)))
}

func (d *desk) request(credential, session, body string) *http.Request {
	r := httptest.NewRequestWithContext(d.Context(), "POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return r
}

func (d *desk) ask(credential, method string, params object) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.send(w, credential, method, params)
	return w
}

// allIsFree says that nothing of the tenant's room is taken.
func (d *desk) allIsFree(tenant string) {
	d.Helper()
	free, err := d.runs.Hold(tenant, d.each)
	if err != nil {
		d.Errorf("something is held still: %v", err)
		return
	}
	free()
}

// shout is a call of the script, with an input of so many bytes.
func shout(bytes int) object {
	return object{"name": "run_skill_script", "arguments": object{"skill": "shout", "script": "scripts/shout.sh",
		"inputs": []object{{"name": "in.txt", "text": strings.Repeat("x", bytes)}}}}
}

// B10: what requests bring counts with what calls under way have, until they are
// answered: a tenant that sends much is told to come later, others are not, and small
// requests go on.
func TestBodiesTakeRoom(t *testing.T) {
	started, free := make(chan struct{}), make(chan struct{})
	d := newDesk(t, toolcase.Folder(t, "shout"), 2<<20, func(context.Context, executor.Request) (executor.Result, error) {
		started <- struct{}{}
		<-free
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte("done\n")}, nil
	})
	var all sync.WaitGroup
	var first *httptest.ResponseRecorder
	all.Go(func() { first = d.ask("acme", "tools/call", shout(1_500_000)) })
	<-started
	if w := d.ask("acme", "tools/call", shout(1_500_000)); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a second large call: %d %s", w.Code, w.Body)
	}
	if w := d.ask("acme", "tools/list", object{}); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "run_skill_script") {
		t.Errorf("a small request: %d %s", w.Code, w.Body)
	}
	if _, err := d.runs.Hold("acme", 1<<20); !errors.Is(err, slot.ErrBusy) {
		t.Errorf("the body counts with calls: %v, want busy", err)
	}
	var theirs *httptest.ResponseRecorder
	all.Go(func() { theirs = d.ask("other", "tools/call", shout(1_500_000)) })
	<-started
	close(free)
	all.Wait()
	for _, w := range []*httptest.ResponseRecorder{first, theirs} {
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "done") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	d.allIsFree("acme")
	d.allIsFree("other")
}

// untaken is an answer whose result its client does not take until taken is closed.
type untaken struct {
	*httptest.ResponseRecorder
	began chan<- struct{}
	taken <-chan struct{}
}

func (u *untaken) Write(b []byte) (int, error) {
	if strings.Contains(string(b), `"result":`) {
		u.began <- struct{}{}
		<-u.taken
	}
	return u.ResponseRecorder.Write(b)
}

// B10: answers that nobody reads have the tenant's room and no more. A call comes without
// its files then, with their handles and a word for it, since its script has run; a file
// of a skill is to be asked for again.
func TestAnswersTakeRoom(t *testing.T) {
	const size = 60_000
	root := toolcase.Folder(t, "shout")
	if err := os.WriteFile(filepath.Join(root, "shout", "large.txt"), []byte(strings.Repeat("l", 200<<10)), 0o644); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, root, 300<<10, func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte(strings.Repeat("s", 10_000)),
			Outputs: []bundle.File{{Path: "out.txt", Data: []byte(strings.Repeat("f", size))}}}, nil
	})
	began, taken := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	var answers []*untaken
	for range 20 {
		u := &untaken{httptest.NewRecorder(), began, taken}
		answers = append(answers, u)
		all.Go(func() { d.send(u, "acme", "tools/call", shout(1)) })
		<-began
	}
	large := object{"uri": "skill://shout/large.txt"}
	if w := d.ask("acme", "resources/read", large); !strings.Contains(w.Body.String(), `"error"`) || !strings.Contains(w.Body.String(), "Ask again later") {
		t.Errorf("a large file: %d %.300s", w.Code, w.Body)
	}
	if w := d.ask("other", "tools/call", shout(1)); !strings.Contains(w.Body.String(), "tracon-file://") {
		t.Errorf("another tenant's answer: %d %.300s", w.Code, w.Body)
	}
	close(taken)
	all.Wait()
	whole := 0
	for i, u := range answers {
		text := u.Body.String()
		has := strings.Contains(text, strings.Repeat("f", size))
		if has {
			whole++
		}
		if has == strings.Contains(text, "Files are not shown here") || !strings.Contains(text, "handle out_") || !strings.Contains(text, `"exitCode":0`) {
			t.Errorf("the answer %d has its file: %v, of %d bytes", i, has, len(text))
		}
	}
	if whole < 1 || whole > 4 {
		t.Errorf("%d answers have their file, want as many as the room has", whole)
	}
	d.allIsFree("acme")
	if w := d.ask("acme", "resources/read", large); !strings.Contains(w.Body.String(), "llll") {
		t.Errorf("a large file, when there is room: %d %.300s", w.Code, w.Body)
	}
}
