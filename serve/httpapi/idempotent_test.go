package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/toolcall"
)

// by sends the call with an Idempotency-Key.
func (h *house) by(token, key string, n client.NewRun, headers ...string) reply {
	h.Helper()
	return h.ask(token, "POST", "/v1/runs", n, append(headers, "Idempotency-Key", key)...)
}

// Case 53: the same call sent twice with one key runs once, and the second gets the
// first's outcome, also when that is no longer kept in memory.
func TestKeyRunsOnce(t *testing.T) {
	ex := newHeld()
	ex.letGo()
	h := newHouseOver(t, ex)
	h.grant("acme")
	n := hello
	n.OutputData = true
	first := h.by("operator", "key-1", n).into(200, &client.Run{})
	second := h.by("operator", "key-1", n).into(200, &client.Run{})
	if string(first.body) != string(second.body) {
		t.Errorf("the second is answered %s\nwant %s", second.body, first.body)
	}
	if first.header.Get("Tracon-Replayed") != "" || second.header.Get("Tracon-Replayed") != "true" {
		t.Errorf("replayed: %q, then %q", first.header.Get("Tracon-Replayed"), second.header.Get("Tracon-Replayed"))
	}
	h.renew()
	if third := h.by("admin", "key-1", n).into(200, nil); string(third.body) != string(first.body) {
		t.Errorf("the third is answered %s\nwant %s", third.body, first.body)
	}
	if n := ex.calls.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// renew gives the house's API runs of its own, as after a restart.
func (h *house) renew() {
	h.Helper()
	h.must(h.config.Runs.Close(h.Context()))
	again, err := runs.New(h.runner, runs.Limits{})
	h.must(err)
	h.Cleanup(func() { h.must(again.Close(context.WithoutCancel(h.Context()))) })
	h.config.Runs = again
	h.handler, err = New(h.config)
	h.must(err)
}

// Case 53: those that come while the first is under way wait for its outcome, or are
// told how far it is, whatever each of them wants.
func TestKeyUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := newHeld()
		h := newHouseOver(t, ex)
		h.grant("acme")
		var wg sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			wg.Go(func() {
				prefer, want := "", http.StatusOK
				if i%2 == 1 {
					prefer, want = "respond-async", http.StatusAccepted
				}
				var run client.Run
				h.by("operator", "key-1", hello, "Prefer", prefer).into(want, &run)
				ids[i] = run.ID
			})
		}
		time.Sleep(time.Minute)
		ex.letGo()
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == "" {
				t.Errorf("the runs are %q, want one", ids)
				break
			}
		}
		if n := ex.calls.Load(); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// W14: a key stands for one body, of one tenant; and who may not run gets nothing by it.
func TestKeyOfAnother(t *testing.T) {
	ex := newHeld()
	ex.letGo()
	h := newHouseOver(t, ex)
	h.grant("acme")
	h.grant("globex")
	var mine, theirs client.Run
	h.by("operator", "key-1", hello).into(200, &mine)
	other := hello
	other.Arguments = json.RawMessage(`["x"]`)
	if p := h.by("operator", "key-1", other).problem(client.KeyReused); strings.Contains(p.Error(), mine.ID) {
		t.Errorf("the problem names the run: %+v", p)
	}
	r := h.by("other", "key-1", hello).into(200, &theirs)
	if theirs.ID == mine.ID || theirs.Tenant != "globex" || r.header.Get("Tracon-Replayed") != "" {
		t.Errorf("another tenant's run is %+v", theirs)
	}
	for _, token := range []string{"reader", "approver", "platform"} {
		h.by(token, "key-1", hello).problem(client.Forbidden)
	}
	h.ask("", "POST", "/v1/runs", hello, "Idempotency-Key", "key-1").problem(client.Unauthenticated)
	if n := ex.calls.Load(); n != 2 {
		t.Errorf("%d ran, want one for each tenant", n)
	}
}

// What was not run leaves the key free: a refused call may be sent again once it may run.
func TestKeyOfWhatWasNotRun(t *testing.T) {
	ex := newHeld()
	ex.letGo()
	h := newHouseOver(t, ex)
	h.by("operator", "key-1", hello).problem(client.RefusedGrant)
	h.by("operator", "key-1", hello, "Prefer", "respond-async").problem(client.RefusedGrant)
	h.grant("acme")
	r := h.by("operator", "key-1", hello).into(200, &client.Run{})
	if r.header.Get("Tracon-Replayed") != "" || ex.calls.Load() != 1 {
		t.Errorf("it ran %d times, replayed %q", ex.calls.Load(), r.header.Get("Tracon-Replayed"))
	}
}

// The same holds for what was admitted and could not be started; what was started stays,
// however it failed.
func TestKeyOfWhatFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		calls int
	}{"could not be started": {executor.ErrUnavailable, 3}, "failed": {context.DeadlineExceeded, 1}} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			h := newHouseOver(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				calls++
				return executor.Result{}, tt.err
			}))
			h.grant("acme")
			for range 3 {
				h.by("operator", "key-1", hello)
				h.renew() // which waits until every run's end was heard of
			}
			if calls != tt.calls {
				t.Errorf("it reached the executor %d times, want %d", calls, tt.calls)
			}
		})
	}
}

// commitCall keeps the record of a call that this house did not run.
func (h *house) commitCall(r toolcall.Record) {
	h.Helper()
	_, err := h.log.Commit(h.Context(), audit.Entry{Tenant: r.Tenant, Kind: audit.Ending, Run: r.ID}, func(ctx context.Context, p audit.Pending) error {
		return h.store.AddCall(ctx, r, p)
	})
	h.must(err)
}

// What a host began and never ended, because it died, is answered with what its record
// says, and never run a second time.
func TestKeyOfADeadHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := newHeld()
		ex.letGo()
		h := newHouseOver(t, ex)
		h.grant("acme")
		body, err := json.Marshal(hello)
		h.must(err)
		dead := id.New()
		_, err = h.store.Begin(t.Context(), idempotency.Claim{Tenant: "acme", Key: "key-1", Body: bundle.Sum(body), Run: dead, At: time.Now()})
		h.must(err)
		var run client.Run
		h.by("operator", "key-1", hello, "Prefer", "wait=5").into(http.StatusAccepted, &run)
		if run.ID != dead || run.State == client.RunEnded {
			t.Errorf("while nobody knows it is %+v", run)
		}
		// The next start closes it.
		time.AfterFunc(10*time.Second, func() {
			h.commitCall(toolcall.Record{ID: dead, Tenant: "acme", Ending: "unknown", Skill: "greeter", Script: "scripts/hello.py"})
		})
		r := h.by("operator", "key-1", hello).into(200, &run)
		if run.ID != dead || run.Code != "unknown" || r.header.Get("Tracon-Replayed") != "true" {
			t.Errorf("then it is %+v", run)
		}
		if n := ex.calls.Load(); n != 0 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// A key that a dead host began is the next caller's where its call was not admitted;
// where it may have been, it is answered as unknown, and never run a second time.
func TestKeySettledAfterADeadHost(t *testing.T) {
	for name, tt := range map[string]struct {
		admitted bool
		code     string
		calls    int
	}{"not admitted": {false, "", 1}, "may have been": {true, "unknown", 0}} {
		t.Run(name, func(t *testing.T) {
			ex := newHeld()
			ex.letGo()
			h := newHouseOver(t, ex)
			h.grant("acme")
			body, err := json.Marshal(hello)
			h.must(err)
			dead := id.New()
			_, err = h.store.Begin(t.Context(), idempotency.Claim{Tenant: "acme", Key: "key-1", Body: bundle.Sum(body), Run: dead, At: time.Now(), Instance: "dead"})
			h.must(err)
			_, _, err = idempotency.Recover(t.Context(), h.store, "dead", func(context.Context, string, string) (bool, error) { return tt.admitted, nil })
			h.must(err)
			var run client.Run
			for range 2 {
				h.by("operator", "key-1", hello).into(200, &run)
			}
			if (run.ID == dead) != tt.admitted || run.Code != tt.code || run.State != client.RunEnded || tt.admitted && run.Text == "" || int(ex.calls.Load()) != tt.calls {
				t.Errorf("it is %+v, and ran %d times", run, ex.calls.Load())
			}
		})
	}
}

// A key names the process that began it, so that its death can be told.
func TestKeyNamesItsHost(t *testing.T) {
	ex := newHeld()
	h := newHouseOver(t, ex)
	h.config.Instance = "this"
	h.renew()
	h.grant("acme")
	var run client.Run
	h.by("operator", "key-1", hello, "Prefer", "respond-async").into(http.StatusAccepted, &run)
	left, err := h.store.Left(t.Context(), "this", 0)
	if err != nil || len(left) != 1 || left[0].Run != run.ID || left[0].Key != "key-1" {
		t.Errorf("there are %+v, %v; want that of run %s", left, err, run.ID)
	}
	ex.letGo()
}

// A key is visible ASCII, and there is one.
func TestKeyForms(t *testing.T) {
	h := newHouse(t)
	h.grant("acme")
	for _, key := range []string{"a b", "ü", strings.Repeat("k", 256), "\x7f"} {
		if r := h.by("operator", key, hello); r.status != 400 && r.status != 422 {
			t.Errorf("the key %q: %d", key, r.status)
		}
	}
	h.by("operator", "one", hello, "Idempotency-Key", "two").problem(client.BadRequest)
	if calls, err := h.store.Calls(t.Context(), "acme", toolcall.Filter{}); err != nil || len(calls) != 0 {
		t.Errorf("there are calls: %+v, %v", calls, err)
	}
}

// RFC 7240: what is not known is passed over, and the first of two counts.
func TestPrefer(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		want    preference
	}{
		{nil, preference{false, -1}},
		{[]string{"respond-async"}, preference{true, -1}},
		{[]string{"Respond-Async, WAIT=10"}, preference{true, 10 * time.Second}},
		{[]string{"wait=10", "wait=20"}, preference{false, 10 * time.Second}},
		{[]string{`return=minimal; foo="a,b", wait = "0"`}, preference{false, 0}},
		{[]string{"wait=99999999"}, preference{false, maxWait}},
		{[]string{"wait=-1", "wait=x", "wait", "wait=1.5", "respond-async=no", "wait=99999999999999999999"}, preference{false, -1}},
	} {
		if got := parsePrefer(tt.headers); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.headers, got, tt.want)
		}
	}
}

// Whatever is sent, the waiting is bounded, and what was understood is in the text.
func FuzzPrefer(f *testing.F) {
	for _, s := range []string{"", "respond-async", "wait=10, respond-async", `return=minimal; a="b,c"`, "wait=99999999999999999999", ",,=;\"", "wait=\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := parsePrefer([]string{s})
		low := strings.ToLower(s)
		if p.wait > maxWait || p.wait >= 0 && !strings.Contains(low, "wait") || p.async && !strings.Contains(low, "respond-async") {
			t.Errorf("%q: %+v", s, p)
		}
		if p.detached() != (p.limit() >= 0) {
			t.Errorf("%q: %+v waits %v", s, p, p.limit())
		}
	})
}

// Of whatever body, no more becomes a call than what the document says: the decoder
// never panics, and what it takes is written back to the same.
func FuzzNewRun(f *testing.F) {
	for _, s := range []string{`{"skill":"a","script":"b"}`, `{"skill":"a","script":"b","arguments":[1e400,{"a":null}],"inputs":[{"path":"x","data":"AA=="}],"outputData":true}`,
		`{"tenant":"a","TENANT":"b"}`, `{"skill":"a","skill":"b"}`, `[]`, ``, `{"skill":"\ud800"}`, `{"skill":"a","script":"b","inputs":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		run, err := decodeRun(body)
		if err != nil {
			return
		}
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatalf("%q became %+v: %v", body, run, err)
		}
		again, err := decodeRun(text)
		if err != nil || again.Skill != run.Skill || again.Script != run.Script || again.OutputData != run.OutputData || len(again.Inputs) != len(run.Inputs) {
			t.Errorf("%q became %s, and that %+v, %v", body, text, again, err)
		}
		for i, in := range run.Inputs {
			if in.Path != again.Inputs[i].Path || !slices.Equal(in.Data, again.Inputs[i].Data) {
				t.Errorf("%q: the input %+v became %+v", body, in, again.Inputs[i])
			}
		}
	})
}
