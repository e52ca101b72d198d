package httpapi

import (
	"context"
	"encoding/json"
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

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
)

// waiting is a runner whose calls wait first, as they do for a slot.
type waiting struct {
	runs.Runner
	slot func()
}

func (w waiting) Run(ctx context.Context, call gate.Call) (tracon.Outcome, error) {
	w.slot()
	return w.Runner.Run(ctx, call)
}

// waits has every call of the API wait for slot, from now on.
func (h *house) waits(slot func()) {
	h.Helper()
	h.must(h.config.Runs.Close(h.Context()))
	all, err := runs.New(waiting{h.runner, slot}, runs.Limits{})
	h.must(err)
	h.Cleanup(func() { h.must(all.Close(context.WithoutCancel(h.Context()))) })
	h.config.Runs = all
	h.inside, h.handler, err = newServer(h.config)
	h.must(err)
}

// turning lets somebody in, and others or nobody from some time on. It is the embedder's
// word too.
type turning struct {
	mu     sync.Mutex
	p      access.Principal
	err    error // of who asks
	denied error // of what may be done
}

func (u *turning) Authenticate(*http.Request) (access.Principal, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.p, u.err
}

func (u *turning) Authorize(context.Context, access.Principal, access.Permission) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.denied
}

// T11: a program's call is asked for again when it has its slot: it never runs where its
// key is revoked by then, is another's, or may run nothing any more, nor where that cannot
// be found out. Whether its caller waits or has left.
func TestCallIsAskedForAgain(t *testing.T) {
	operator := access.Principal{Tenant: "acme", Actor: "ci", Key: "1", Roles: []access.Role{access.Operator}}
	reader, foreign, another := operator, operator, operator
	reader.Roles = []access.Role{access.Reader}
	foreign.Tenant = "globex"
	another.Actor = "somebody else"
	for _, tt := range []struct {
		name        string
		after       access.Principal // who it is when the call has its slot
		err, denied error
		runs        int32
		code        string // that a caller who waits is told
	}{
		{"it holds", operator, nil, nil, 1, ""},
		{"it is revoked", access.Principal{}, ErrUnauthenticated, nil, 0, "grant"},
		{"it may only read", reader, nil, nil, 0, "grant"},
		{"the embedder says no", operator, nil, errors.New("not after six o'clock"), 0, "grant"},
		{"it is another tenant's", foreign, nil, nil, 0, "grant"},
		{"it is somebody else's of the tenant", another, nil, nil, 0, "grant"},
		{"nobody knows", access.Principal{}, errors.New("the store is away"), nil, 0, "unknown"},
	} {
		for _, prefer := range []string{"", "respond-async"} {
			t.Run(strings.TrimSpace(tt.name+" "+prefer), func(t *testing.T) {
				who := &turning{p: operator}
				var ran atomic.Int32
				h := newHouseOver(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
					ran.Add(1)
					return executor.Result{Ending: executor.Exited(0)}, nil
				}), func(c *Config) { c.Authenticator, c.Authorizer = who, who })
				h.grant("acme")
				h.grant("globex") // which would run it
				h.waits(func() {
					who.mu.Lock()
					defer who.mu.Unlock()
					who.p, who.err, who.denied = tt.after, tt.err, tt.denied
				})
				r := h.ask("any", "POST", "/v1/runs", hello, "Prefer", prefer)
				h.must(h.config.Runs.Close(t.Context())) // it has ended
				if n := ran.Load(); n != tt.runs {
					t.Errorf("it ran %d times, want %d: %d %s", n, tt.runs, r.status, r.body)
				}
				var told struct{ Code string }
				h.must(json.Unmarshal(r.body, &told))
				if prefer == "" && told.Code != tt.code {
					t.Errorf("it is told %d %s, want the code %q", r.status, r.body, tt.code)
				}
			})
		}
	}
}

// crowded looks at nobody's credential any more once too many of the machine did not
// hold, but again; and the leaver's is taken away.
type crowded struct {
	leaver
	full atomic.Bool
}

func (c *crowded) Authenticate(r *http.Request) (access.Principal, error) {
	if c.full.Load() {
		return access.Principal{}, fmt.Errorf("the door: %w", &access.TooManyError{After: time.Second})
	}
	return c.leaver.Authenticate(r)
}

// AuthenticateAgain implements Reauthenticator.
func (c *crowded) AuthenticateAgain(r *http.Request) (access.Principal, error) {
	return c.leaver.Authenticate(r)
}

// T11, W03: that too many credentials of a machine did not hold ends nothing whose own
// holds, and keeps nothing whose own is revoked: a stream ends, a call that waits never
// runs.
func TestLooksAgainHoweverManyFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &crowded{leaver: leaver{tokens: people()}}
		who.tokens["leaver"] = access.Principal{Tenant: "acme", Actor: "leaver", Roles: []access.Role{access.Operator}}
		ex := newHeld()
		h := newHouseOver(t, ex, func(c *Config) { c.Authenticator = who })
		_, err := h.admin.SetPolicy(t.Context(), "test", "acme", func(p *gate.Policy) error {
			p.Timeout = 10 * time.Minute // the run that is followed lasts
			return nil
		})
		h.must(err)
		h.grant("acme")
		slots := make(chan struct{}, 1)
		h.waits(func() { <-slots })
		slots <- struct{}{}
		run := h.start("operator")
		streams, calls := map[string]chan int{}, map[string]chan int{}
		for _, token := range []string{"operator", "leaver"} {
			send := func(method, path, body string) chan int {
				status := make(chan int, 1)
				go func() {
					r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer "+token)
					r.Header.Set("Content-Type", "application/json")
					w := httptest.NewRecorder()
					h.handler.ServeHTTP(w, r)
					status <- w.Code
				}()
				return status
			}
			streams[token] = send("GET", "/v1/runs/"+run.ID+"/events", "")
			calls[token] = send("POST", "/v1/runs", `{"skill":"greeter","script":"scripts/hello.py"}`)
		}
		beat := func(want string) {
			t.Helper()
			time.Sleep(heartbeat + time.Second)
			synctest.Wait()
			if got := fmt.Sprint(len(streams["operator"]), len(streams["leaver"]), len(calls["operator"]), len(calls["leaver"])); got != want {
				t.Errorf("of the two streams and the two calls these have ended: %s, want %s", got, want)
			}
		}
		synctest.Wait() // all four were let in
		who.full.Store(true)
		h.ask("operator", "GET", "/v1/skills", nil).problem(client.RateLimited)
		beat("0 0 0 0")
		who.gone.Store(true)
		beat("0 1 0 0")
		ex.letGo()
		<-streams["operator"] // to the end of the run, whose slot is free now
		close(slots)
		if status := <-calls["leaver"]; status != http.StatusForbidden {
			t.Errorf("the call whose credential is revoked has the answer %d", status)
		}
		if status := <-calls["operator"]; status != http.StatusOK {
			t.Errorf("the call whose credential holds has the answer %d", status)
		}
		if n := ex.calls.Load(); n != 2 {
			t.Errorf("%d reached the executor, want the run that is followed and one call", n)
		}
	})
}
