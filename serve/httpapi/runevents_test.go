package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
)

// server returns the house behind a real listener, and a client of it.
func (h *house) server(token string) *client.Client {
	h.Helper()
	srv := httptest.NewServer(h.handler)
	transport := &http.Transport{}
	h.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
	})
	c, err := client.New(client.Config{Server: srv.URL, Key: token, Transport: transport})
	h.must(err)
	return c
}

// told is what a follower reads, as text.
func told(e client.RunEvent) string {
	switch e.Kind {
	case client.EventOutput:
		return fmt.Sprintf("%d %s:%s", e.Seq, e.Output.Stream, e.Output.Text)
	case client.EventGap:
		return fmt.Sprintf("%d gap:%d", e.Seq, e.Lost.Bytes)
	case client.EventEnd:
		return fmt.Sprintf("%d end:%s", e.Seq, e.Run.ID)
	}
	return fmt.Sprintf("%d %s", e.Seq, e.Kind)
}

// A run is followed over a real connection while it goes on: what it writes comes as it
// is written, a follower who broke off goes on where it was, and at the end comes the
// run. Nothing is left behind.
func TestFollowRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("follow", func(t *testing.T) {
		ex := newHeld()
		h := newHouseOver(t, ex)
		h.grant("acme")
		c := h.server("operator")
		run, err := c.StartRun(t.Context(), hello, client.RunOptions{Detach: true})
		h.must(err)
		want := []string{"1 started", "2 stdout:hel", "3 stdout:lo\n", "4 end:" + run.ID}
		follow := func(after uint64, stop int) (got []string) {
			for e, err := range c.FollowRun(t.Context(), run.ID, after) {
				h.must(err)
				got = append(got, told(e))
				if len(got) == stop {
					break
				}
			}
			return got
		}
		// The script waits until both have read what it wrote first.
		if got := follow(0, 2); fmt.Sprint(got) != fmt.Sprint(want[:2]) {
			t.Errorf("read %q, want %q", got, want[:2])
		}
		ex.letGo()
		if got := follow(2, 0); fmt.Sprint(got) != fmt.Sprint(want[2:]) {
			t.Errorf("going on it read %q, want %q", got, want[2:])
		}
		if got := follow(0, 0); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after the end it read %q, want %q", got, want)
		}
		if got := follow(4, 0); fmt.Sprint(got) != fmt.Sprint(want[3:]) {
			t.Errorf("behind the end it read %q, want the end again", got)
		}
		whole, err := c.Run(t.Context(), run.ID)
		h.must(err)
		if *whole.Stdout != "hello\n" {
			t.Errorf("the run is %+v", whole)
		}
		var file strings.Builder
		h.must(c.RunOutput(t.Context(), run.ID, "a/b.csv", &file))
		if file.String() != "1,2\n" {
			t.Errorf("the file is %q", file.String())
		}
		// Its record alone is kept now.
		h.must(h.config.Runs.Close(t.Context()))
		if got := follow(0, 0); fmt.Sprint(got) != fmt.Sprintf("[1 end:%s]", run.ID) {
			t.Errorf("by its record it read %q", got)
		}
	})
}

// A client that is waiting and is cancelled cancels the run on the server (case 50).
func TestWaitingClientLeaves(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("leave", func(t *testing.T) {
		left := make(chan error, 1)
		started := make(chan struct{})
		h := newHouseOver(t, executor.Func(func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			close(started)
			<-ctx.Done()
			left <- context.Cause(ctx)
			return executor.Result{}, context.Cause(ctx)
		}))
		h.grant("acme")
		c := h.server("operator")
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-started
			leave()
		}()
		if _, err := c.StartRun(ctx, hello, client.RunOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the client got %v", err)
		}
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Error("the script goes on for nobody")
		}
	})
}

// frames is an answer of server-sent events that somebody reads while it is written.
type frames struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (f *frames) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ResponseRecorder.Write(b)
}

func (f *frames) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Body.String()
}

// leaver knows everybody, and from some time on not the leaver, or takes the leaver's
// token for somebody else's.
type leaver struct {
	tokens
	gone, another atomic.Bool
}

func (l *leaver) Authenticate(r *http.Request) (access.Principal, error) {
	p, err := l.tokens.Authenticate(r)
	if p.Actor == "leaver" && l.gone.Load() {
		return access.Principal{}, ErrUnauthenticated
	}
	if p.Actor == "leaver" && l.another.Load() {
		p.Actor = "somebody else"
	}
	return p, err
}

// T11: in a stream in which nothing happens a comment comes every 15 seconds, and whose
// key is revoked meanwhile, or is somebody else's of the tenant, reads no further. The run
// goes on.
func TestFollowerWhoMayNoMore(t *testing.T) {
	t.Run("revoked", func(t *testing.T) { leaves(t, func(l *leaver) { l.gone.Store(true) }) })
	t.Run("somebody else's", func(t *testing.T) { leaves(t, func(l *leaver) { l.another.Store(true) }) })
}

// leaves has a reader of a stream be let in no more as who they were.
func leaves(t *testing.T, turn func(*leaver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ex := newHeld()
		who := &leaver{tokens: people()}
		who.tokens["leaver"] = access.Principal{Tenant: "acme", Actor: "leaver", Roles: []access.Role{access.Reader}}
		h := newHouseOver(t, ex, func(c *Config) { c.Authenticator = who })
		h.grant("acme")
		run := h.start("operator")
		rec := &frames{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/runs/"+run.ID+"/events", nil)
			req.Header.Set("Authorization", "Bearer leaver")
			h.handler.ServeHTTP(rec, req)
		}()
		time.Sleep(heartbeat + time.Second)
		synctest.Wait()
		if n := strings.Count(rec.text(), ":\n\n"); n != 2 {
			t.Errorf("%d comments came, want one at the beginning and one beat: %q", n, rec.text())
		}
		if rec.Header().Get("Content-Type") != "text/event-stream" || !strings.Contains(rec.text(), "event: output\ndata: {\"stream\":\"stdout\",\"text\":\"hel\"}\n\n") {
			t.Errorf("the stream is %v %q", rec.Header(), rec.text())
		}
		turn(who)
		began := time.Now()
		<-ended
		if got := time.Since(began); got > heartbeat {
			t.Errorf("it ended after %v", got)
		}
		ex.letGo()
		h.ended("acme", run.ID)
		if text := rec.text(); strings.Contains(text, "event: end") {
			t.Errorf("who may no more read on: %q", text)
		}
	})
}

// T11: a script that prints all the time does not keep a reader's stream who may no more.
func TestFollowerWhoMayNoMoreOfATalker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &leaver{tokens: people()}
		who.tokens["leaver"] = access.Principal{Tenant: "acme", Actor: "leaver", Roles: []access.Role{access.Reader}}
		h := newHouseOver(t, executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			for range 5 {
				time.Sleep(heartbeat / 3)
				req.Live().Send(gate.Stdout, []byte("."))
			}
			return executor.Result{Ending: executor.Exited(0)}, nil
		}), func(c *Config) { c.Authenticator = who })
		h.grant("acme")
		run := h.start("operator")
		rec, began := &frames{ResponseRecorder: httptest.NewRecorder()}, time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/runs/"+run.ID+"/events", nil)
			req.Header.Set("Authorization", "Bearer leaver")
			h.handler.ServeHTTP(rec, req)
		}()
		synctest.Wait()
		who.gone.Store(true)
		<-ended
		if got := time.Since(began); got > heartbeat+heartbeat/3 {
			t.Errorf("it ended after %v", got)
		}
		h.ended("acme", run.ID)
		if text := rec.text(); !strings.Contains(text, "event: output") || strings.Contains(text, "event: end") {
			t.Errorf("the stream is %q", text)
		}
	})
}

// Case 28, O: whatever a script writes, it cannot write an event of its own, and the
// text comes back as it was written.
func TestFollowHostileOutput(t *testing.T) {
	const hostile = "x\n\nid: 9\nevent: end\ndata: {\"id\":\"forged\"}\n\n\r\n:\r\x00\x1b[2J\u2028</script>"
	h := newHouseOver(t, executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
		req.Live().Send(gate.Stderr, []byte(hostile))
		return executor.Result{Ending: executor.Exited(0)}, nil
	}))
	h.grant("acme")
	c := h.server("operator")
	run, err := c.StartRun(t.Context(), hello, client.RunOptions{})
	h.must(err)
	var got []string
	for e, err := range c.FollowRun(t.Context(), run.ID, 0) {
		h.must(err)
		got = append(got, told(e))
	}
	if want := []string{"1 started", "2 stderr:" + hostile, "3 end:" + run.ID}; fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("read %q\nwant %q", got, want)
	}
}

// B10: followers are bounded, and one too many is told when to come again; so is a
// number that is none.
func TestFollowBounds(t *testing.T) {
	ex := newHeld()
	h := newHouseOver(t, ex)
	h.grant("acme")
	h.must(h.config.Runs.Close(t.Context()))
	few, err := runs.New(h.runner, runs.Limits{Followers: 1})
	h.must(err)
	t.Cleanup(func() { h.must(few.Close(context.WithoutCancel(t.Context()))) })
	h.config.Runs = few
	h.handler, err = New(h.config)
	h.must(err)
	run := h.start("operator")
	one, err := few.Follow("acme", run.ID, 0)
	h.must(err)
	r := h.ask("reader", "GET", "/v1/runs/"+run.ID+"/events", nil)
	r.problem(client.Busy)
	if r.header.Get("Retry-After") == "" {
		t.Error("nobody says when to come again")
	}
	one.Close()
	for _, id := range []string{"x", "-1", "1.5", "99999999999999999999", " 1 2"} {
		if r := h.ask("reader", "GET", "/v1/runs/"+run.ID+"/events", nil, "Last-Event-ID", id); r.status != 400 && r.status != 422 {
			t.Errorf("Last-Event-ID %q: %d", id, r.status)
		}
	}
	ex.letGo()
	r = h.ask("reader", "GET", "/v1/runs/"+run.ID+"/events", nil).into(200, nil)
	lines := bufio.NewScanner(strings.NewReader(string(r.body)))
	n := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: ") {
			n++
		}
	}
	if n < 2 || !strings.Contains(string(r.body), "event: end\n") {
		t.Errorf("the events are %q", r.body)
	}
}
