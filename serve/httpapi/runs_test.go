package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/toolcall"
)

// held is an executor whose scripts say "hello" and wait until they are let go; it
// counts them.
type held struct {
	calls atomic.Int64
	free  chan struct{}
}

func newHeld() *held { return &held{free: make(chan struct{})} }

func (h *held) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	h.calls.Add(1)
	req.Live().Send(gate.Stdout, []byte("hel"))
	select {
	case <-h.free:
	case <-ctx.Done():
		return executor.Result{}, context.Cause(ctx)
	}
	req.Live().Send(gate.Stdout, []byte("lo\n"))
	return executor.Result{Ending: executor.Exited(3), Stdout: []byte("hello\n"), Stderr: []byte("careful\n"), Notes: []string{"a note"},
		Outputs: []bundle.File{{Path: "a/b.csv", Data: []byte("1,2\n")}, {Path: "page.html", Data: []byte("<script>alert(1)</script>")}}}, nil
}

// letGo lets every script go on, now and later.
func (h *held) letGo() { close(h.free) }

var hello = client.NewRun{Skill: "greeter", Script: "scripts/hello.py"}

// start starts the script as the token's principal, and the run goes on by itself.
func (h *house) start(token string, headers ...string) client.Run {
	h.Helper()
	var run client.Run
	r := h.ask(token, "POST", "/v1/runs", hello, append(headers, "Prefer", "respond-async")...).into(http.StatusAccepted, &run)
	if r.header.Get("Location") != "/v1/runs/"+run.ID || run.State == client.RunEnded {
		h.Errorf("started at %q: %+v", r.header.Get("Location"), run)
	}
	return run
}

// ended waits for the end of the tenant's run.
func (h *house) ended(tenant, id string) {
	h.Helper()
	_, err := h.config.Runs.Wait(h.Context(), tenant, id)
	h.must(err)
}

// ending is what the log says came of the tenant's run.
func (h *house) ending(tenant, id string) (e audit.Entry) {
	h.Helper()
	for leaf, err := range h.log.Entries(h.Context(), tenant, 0) {
		h.must(err)
		if leaf.Entry.Kind == audit.Ending && leaf.Entry.Run == id {
			return leaf.Entry
		}
	}
	return e
}

// A run that is waited for comes back whole: what the script did, what stands in the
// log, and its files where they were asked for (R27: its exit code is no failure).
func TestRun(t *testing.T) {
	ex := newHeld()
	ex.letGo()
	h := newHouseOver(t, ex)
	g := h.grant("acme")
	three := 3
	var run client.Run
	r := h.ask("operator", "POST", "/v1/runs", hello).into(http.StatusOK, &run)
	if run.State != client.RunEnded || run.Code != "" || run.Text != "" || run.ExitCode == nil || *run.ExitCode != three || run.Signal != nil ||
		run.Stdout == nil || *run.Stdout != "hello\n" || run.Stderr == nil || *run.Stderr != "careful\n" || run.Ending != "exited" ||
		run.StdoutBytes != 6 || run.Tenant != "acme" || run.Actor != "operator at acme" || run.Grant != g.ID || run.Digest != g.Pin.String() ||
		run.Executor == "" || run.Tier != "process" || !slices.Equal(run.Notes, []string{"a note"}) || run.Audit == nil || run.Audit.Hash == "" {
		t.Errorf("the run is %s", r.body)
	}
	want := []client.Output{{Path: "a/b.csv", Size: 4}, {Path: "page.html", Size: 25}}
	if !reflect.DeepEqual(run.Outputs, want) || run.OutputFiles != 2 || run.OutputBytes != 29 || r.header.Get("Location") != "/v1/runs/"+run.ID {
		t.Errorf("the files are %+v at %q", run.Outputs, r.header.Get("Location"))
	}
	var again client.Run
	h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &again)
	if !reflect.DeepEqual(run, again) {
		t.Errorf("got  %+v\nwant %+v", again, run)
	}

	withData := hello
	withData.OutputData = true
	h.ask("operator", "POST", "/v1/runs", withData).into(200, &run)
	if len(run.Outputs) != 2 || string(run.Outputs[0].Data) != "1,2\n" {
		t.Errorf("the files are %+v, want their data", run.Outputs)
	}

	// What is no longer kept here is told by its record.
	h.must(h.config.Runs.Close(t.Context()))
	again = client.Run{}
	h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &again)
	if again.State != client.RunEnded || again.Stdout != nil || again.Outputs != nil || again.StdoutBytes != 6 || again.OutputFiles != 2 || *again.ExitCode != 3 || again.Code != "" {
		t.Errorf("by its record the run is %+v", again)
	}
	h.ask("reader", "GET", "/v1/runs/"+run.ID+"/stdout", nil).problem(client.NotFound)
}

// Arguments and inputs reach the script as they were sent: no number is rounded (case
// 17), no byte is changed (case 9).
func TestRunArguments(t *testing.T) {
	var got atomic.Pointer[executor.Request]
	h := newHouseOver(t, executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
		got.Store(&req)
		return executor.Result{Ending: executor.Exited(0)}, nil
	}))
	h.grant("acme")
	body := `{"skill":"greeter","script":"scripts/hello.py","arguments":["--value","-5","My File — ünï.txt","it's","","a\nb","9007199254740993"],` +
		`"inputs":[{"path":"in/x.bin","data":"AAECAwT/"},{"path":"empty","data":""}]}`
	h.ask("operator", "POST", "/v1/runs", body).into(200, &client.Run{})
	req := *got.Load()
	if want := []string{"--value", "-5", "My File — ünï.txt", "it's", "", "a\nb", "9007199254740993"}; !slices.Equal(req.Words(), want) {
		t.Errorf("the words are %q", req.Words())
	}
	if text, _, ok := req.Inputs().Text("in/x.bin"); !ok || text != "\x00\x01\x02\x03\x04\xff" {
		t.Errorf("the input is %q", text)
	}
	if req.Tenant() != "acme" || req.Actor() != "operator at acme" {
		t.Errorf("it runs for %q, asked by %q", req.Tenant(), req.Actor())
	}
}

// B8, R18: what was never started is a problem with the code that says why; the
// operator reads the reason, who may only run reads no more than a model.
func TestRunRefused(t *testing.T) {
	const runner = "runner-alone"
	tests := []struct {
		name   string
		change func(h *house, n *client.NewRun)
		code   client.Code
	}{
		{"the tenant is switched off", func(h *house, n *client.NewRun) {
			_, err := h.admin.SetPolicy(h.Context(), "test", "acme", func(p *gate.Policy) error { p.Enabled = false; return nil })
			h.must(err)
		}, client.RefusedSwitch},
		{"no such skill", func(h *house, n *client.NewRun) { n.Skill = "nobody" }, client.RefusedName},
		{"no such script", func(h *house, n *client.NewRun) { n.Script = "../../etc/passwd" }, client.RefusedName},
		{"no grant", func(h *house, n *client.NewRun) {
			g, err := h.store.Grants(h.Context(), "acme", grant.Filter{})
			h.must(err)
			_, err = h.admin.Revoke(h.Context(), "test", "acme", g[0].ID, "")
			h.must(err)
		}, client.RefusedGrant},
		{"the content has changed", func(h *house, n *client.NewRun) { h.importSkill("acme", script+"# changed\n") }, client.RefusedPin},
		{"the interpreter is off the list", func(h *house, n *client.NewRun) {
			_, err := h.admin.SetPolicy(h.Context(), "test", "acme", func(p *gate.Policy) error { p.Interpreters = nil; return nil })
			h.must(err)
		}, client.RefusedInterpreter},
		{"the arguments are an object where words are wanted (case 13)", func(h *house, n *client.NewRun) { n.Arguments = json.RawMessage(`{"a":1}`) }, client.RefusedArguments},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ex := newHeld()
			h := newHouseOver(t, ex, func(c *Config) {
				c.Authenticator.(tokens)[runner] = access.Principal{Tenant: "acme", Actor: "app", Roles: []access.Role{access.Operator}, Scopes: []access.Permission{access.WriteRuns}}
			})
			h.grant("acme")
			n := hello
			tt.change(h, &n)
			for _, prefer := range []string{"", "respond-async"} {
				p := h.ask("operator", "POST", "/v1/runs", n, "Prefer", prefer).problem(tt.code)
				if p.Reason == "" || p.Remedy == "" || p.Run == "" || p.Detail == "" || p.Detail == p.Reason {
					t.Errorf("the operator reads %+v", p)
				}
				p = h.ask(runner, "POST", "/v1/runs", n, "Prefer", prefer).problem(tt.code)
				if p.Reason != "" || p.Remedy != "" || p.Detail == "" {
					t.Errorf("who may run alone reads %+v", p)
				}
				h.ask("operator", "GET", "/v1/runs/"+p.Run, nil).problem(client.NotFound)
			}
			if n := ex.calls.Load(); n != 0 {
				t.Errorf("%d reached the executor", n)
			}
		})
	}
}

// Every gate has its code in the closed set, and no failure is left without one.
func TestEveryCodeOfARunIsKnown(t *testing.T) {
	for _, name := range gate.Names() {
		if status := client.Code(name).Status(); status != 403 && status != 404 && status != 422 {
			t.Errorf("a refusal of gate %s has the status %d", name, status)
		}
	}
	for _, code := range []client.Code{"busy", "audit_unavailable", "executor_unavailable", "cancelled"} {
		if code.Status() == 500 {
			t.Errorf("%s has no status of its own", code)
		}
	}
}

// A failure of a run that was started is the run's, with its code and what a model may
// be told; an executor's own words reach nobody (R26, case 62).
func TestRunFailed(t *testing.T) {
	const secret = "dial /var/run/secret.sock: token 12345"
	for code, ex := range map[string]executor.Func{
		"executor_failed": func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New(secret)
		},
		"timed_out": func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{Ending: executor.Expired(), Stdout: []byte("so far")}, nil
		},
	} {
		t.Run(code, func(t *testing.T) {
			h := newHouseOver(t, ex)
			h.grant("acme")
			var run, list client.Run
			r := h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
			if run.Code != code || run.Ending != code || run.Text == "" || run.ExitCode != nil || (run.Stdout != nil) != (code == "timed_out") {
				t.Errorf("the run is %s", r.body)
			}
			rec, err := h.config.Store.Call(t.Context(), "acme", run.ID)
			h.must(err)
			old := recordedRun(rec)
			if !run.Begun.Equal(old.Begun) || !run.Ended.Equal(old.Ended) || run.DurationSeconds != old.DurationSeconds ||
				run.WaitedSeconds != old.WaitedSeconds || run.Text != old.Text || run.Code != old.Code {
				t.Errorf("B7: it is told otherwise when its record alone is kept: %+v, then %+v", run, old)
			}
			var page client.Page[client.Run]
			h.ask("reader", "GET", "/v1/runs", nil).into(200, &page)
			h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &list)
			if run.Audit == nil || run.Audit.Hash == "" || run.Digest == "" || run.Grant == "" || run.Executor == "" || run.Tier == "" {
				t.Errorf("B7: it was admitted, and is told without its proof: %s", r.body)
			}
			if all := string(r.body) + fmt.Sprintf("%+v %+v", page, list); strings.Contains(all, "secret") || strings.Contains(all, "12345") {
				t.Errorf("the executor's own words are told: %s", all)
			}
		})
	}
	t.Run("executor_unavailable", func(t *testing.T) {
		h := newHouseOver(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, fmt.Errorf("%w: %s", executor.ErrUnavailable, secret)
		}))
		h.grant("acme")
		p := h.ask("operator", "POST", "/v1/runs", hello).problem(client.ExecutorUnavailable)
		if strings.Contains(fmt.Sprint(p), "secret") {
			t.Errorf("the executor's own words are told: %+v", p)
		}
		var run client.Run
		h.ask("reader", "GET", "/v1/runs/"+p.Run, nil).into(200, &run) // it was admitted, so it is told
		if run.Code != "executor_unavailable" || run.State != client.RunEnded {
			t.Errorf("the run is %+v", run)
		}
	})
}

// Case 52: where there is no room the answer is busy, with when to come again.
func TestRunBusy(t *testing.T) {
	h := newHouse(t)
	h.grant("acme")
	hold, err := h.config.Runs.Hold("acme", runs.DefaultCallBytes/2)
	h.must(err)
	r := h.ask("operator", "POST", "/v1/runs", hello)
	r.problem(client.Busy)
	if r.header.Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	hold()
	h.ask("operator", "POST", "/v1/runs", hello).into(200, nil)
	h.must(h.config.Runs.Close(t.Context()))
	h.ask("operator", "POST", "/v1/runs", hello).problem(client.Unavailable)
}

// Preferences: whoever does not want to wait is answered once the run is admitted, who
// waits a while as soon as it ends, or then.
func TestRunDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := newHeld()
		h := newHouseOver(t, ex)
		h.grant("acme")
		run := h.start("operator")
		began := time.Now()
		h.ask("operator", "POST", "/v1/runs", hello, "Prefer", "wait=7").into(http.StatusAccepted, &run)
		if got := time.Since(began); got != 7*time.Second {
			t.Errorf("it waited %v, want 7s", got)
		}
		synctest.Wait()
		var one client.Run
		h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &one)
		if one.State != client.RunRunning || !one.Ended.IsZero() || one.Stdout != nil || one.ExitCode != nil {
			t.Errorf("under way it is %+v", one)
		}
		h.ask("reader", "GET", "/v1/runs/"+run.ID+"/stdout", nil).problem(client.Conflict)
		time.AfterFunc(3*time.Second, ex.letGo)
		began = time.Now()
		h.ask("operator", "POST", "/v1/runs", hello, "Prefer", "respond-async", "Prefer", "wait=7").into(200, &one)
		if got := time.Since(began); got != 3*time.Second || one.State != client.RunEnded {
			t.Errorf("it waited %v for %+v, want 3s", got, one)
		}
		h.ended("acme", run.ID)
	})
}

// Case 50: a caller who leaves cancels the run that it waits for, and no other.
func TestRunsCallerLeaves(t *testing.T) {
	for name, tt := range map[string]struct {
		headers []string
		want    string
	}{
		"waiting":        {nil, "cancelled"},
		"detached":       {[]string{"Prefer", "wait=60"}, "exited"},
		"waiting by key": {[]string{"Idempotency-Key", "k"}, "exited"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ex := newHeld()
				h := newHouseOver(t, ex)
				h.grant("acme")
				ctx, leave := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, leave)
				req := httptest.NewRequestWithContext(ctx, "POST", "/v1/runs", strings.NewReader(`{"skill":"greeter","script":"scripts/hello.py"}`))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer operator")
				for i := 0; i < len(tt.headers); i += 2 {
					req.Header.Set(tt.headers[i], tt.headers[i+1])
				}
				h.handler.ServeHTTP(httptest.NewRecorder(), req)
				ex.letGo()
				synctest.Wait()
				calls, err := h.store.Calls(t.Context(), "acme", toolcall.Filter{})
				h.must(err)
				if len(calls) != 1 || calls[0].Ending != tt.want {
					t.Errorf("the calls are %+v, want one that %s", calls, tt.want)
				}
			})
		})
	}
}

// Cancelling stops the run and names who did, and of one that has ended changes nothing.
func TestRunCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := newHeld()
		h := newHouseOver(t, ex)
		h.grant("acme")
		run := h.start("operator")
		synctest.Wait()
		h.ask("reader", "POST", "/v1/runs/"+run.ID+"/cancel", nil).problem(client.Forbidden)
		h.ask("admin", "POST", "/v1/runs/"+run.ID+"/cancel", nil).into(200, &run)
		if run.State != client.RunEnded || run.Code != "cancelled" || run.CancelledBy != "admin at acme" {
			t.Errorf("the run is %+v", run)
		}
		if run.Audit == nil || run.Digest == "" || run.Grant == "" || run.Executor == "" {
			t.Errorf("B7: it was admitted, and is told without it: %+v", run)
		}
		synctest.Wait()
		var later client.Run
		var page client.Page[client.Run]
		h.ask("reader", "GET", "/v1/runs/"+run.ID, nil).into(200, &later)
		h.ask("reader", "GET", "/v1/runs", nil).into(200, &page)
		rec, err := h.config.Store.Call(t.Context(), "acme", run.ID)
		h.must(err)
		want := recordedRun(rec)
		want.CancelledBy, want.Audit = "admin at acme", run.Audit
		for name, got := range map[string]client.Run{"alone": later, "in the list": page.Items[0]} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("B7: %s it is not as its record says (-want +got):\n%s", name, diff)
			}
		}
		if e := h.ending("acme", run.ID); e.Fact("ending") != "cancelled" || e.Fact("cancelledBy") != "admin at acme" {
			t.Errorf("the log says %+v", e)
		}
		ex.letGo()
		run = client.Run{}
		h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
		h.ask("admin", "POST", "/v1/runs/"+run.ID+"/cancel", nil).into(200, &run)
		h.must(h.config.Runs.Close(t.Context()))
		h.ask("admin", "POST", "/v1/runs/"+run.ID+"/cancel", nil).into(200, &run)
		if run.Code != "" || *run.ExitCode != 3 {
			t.Errorf("what had ended is %+v", run)
		}
	})
}

// T01, T03: another tenant's run is not there, in any way, and the answer is that for
// one that never was.
func TestRunsOfAnotherTenant(t *testing.T) {
	ex := newHeld()
	h := newHouseOver(t, ex)
	h.grant("acme")
	running := h.start("operator")
	for _, when := range []string{"running", "ended"} {
		for _, op := range [][2]string{{"GET", ""}, {"GET", "/events"}, {"GET", "/stdout"}, {"GET", "/stderr"}, {"GET", "/output?path=a/b.csv"}, {"POST", "/cancel"}} {
			theirs := h.ask("other", op[0], "/v1/runs/"+running.ID+op[1], nil)
			never := h.ask("other", op[0], "/v1/runs/01a22a5d-8f31-7b1f-b11c-d0382acd83bf"+op[1], nil)
			a, b := theirs.problem(client.NotFound), never.problem(client.NotFound)
			a.RequestID, b.RequestID = "", ""
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s, %s: %+v, but of one that never was %+v", theirs.what, when, a, b)
			}
		}
		var page client.Page[client.Run]
		if h.ask("other", "GET", "/v1/runs", nil).into(200, &page); len(page.Items) != 0 {
			t.Errorf("the other tenant's list has %+v", page.Items)
		}
		h.ask("platform", "GET", "/v1/runs/"+running.ID, nil).problem(client.Forbidden)
		if when == "running" {
			ex.letGo()
			h.ended("acme", running.ID)
		}
	}
	if e := h.ending("acme", running.ID); e.Fact("ending") == "cancelled" {
		t.Error("the other tenant stopped it")
	}
}

// W12: what a script wrote is a file to be saved, of a type that no browser shows.
func TestRunDownloads(t *testing.T) {
	ex := newHeld()
	ex.letGo()
	h := newHouseOver(t, ex)
	h.grant("acme")
	var run client.Run
	h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
	for _, tt := range []struct{ path, kind, disposition, body string }{
		{"/stdout", "text/plain; charset=utf-8", "attachment; filename=stdout.txt", "hello\n"},
		{"/stderr", "text/plain; charset=utf-8", "attachment; filename=stderr.txt", "careful\n"},
		{"/output?path=a/b.csv", "application/octet-stream", "attachment; filename=b.csv", "1,2\n"},
		{"/output?path=page.html", "application/octet-stream", "attachment; filename=page.html", "<script>alert(1)</script>"},
	} {
		r := h.ask("reader", "GET", "/v1/runs/"+run.ID+tt.path, nil).into(200, nil)
		if string(r.body) != tt.body || r.header.Get("Content-Type") != tt.kind || r.header.Get("Content-Disposition") != tt.disposition || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q, %v", tt.path, r.body, r.header)
		}
	}
	for _, path := range []string{"b.csv", "../a/b.csv", "/etc/passwd", "a/b.csv/"} {
		h.ask("reader", "GET", "/v1/runs/"+run.ID+"/output?path="+path, nil).problem(client.NotFound)
	}
}

// T02: what is under way and what is recorded make one list, each once, in parts; a
// cursor of another tenant's is refused.
func TestRunsInParts(t *testing.T) {
	ex := newHeld()
	h := newHouseOver(t, ex)
	h.grant("acme")
	h.grant("globex")
	ex.letGo()
	var want []string
	for i := range 7 {
		var run client.Run
		h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
		want = append([]string{run.ID}, want...)
		if i == 3 { // the older ones are told by their records alone
			h.must(h.config.Runs.Close(t.Context()))
			again, err := runs.New(h.runner, runs.Limits{})
			h.must(err)
			t.Cleanup(func() { h.must(again.Close(context.WithoutCancel(t.Context()))) })
			h.config.Runs = again
			h.handler, err = New(h.config)
			h.must(err)
		}
	}
	for _, list := range []string{"/v1/runs", "/v1/calls"} {
		for _, limit := range []int{1, 2, 3, 7, 100} {
			var got []string
			cursor := ""
			for {
				var page client.Page[struct{ ID string }]
				r := h.ask("reader", "GET", fmt.Sprintf("%s?limit=%d&cursor=%s", list, limit, cursor), nil)
				h.must(json.Unmarshal(r.body, &page))
				for _, item := range page.Items {
					got = append(got, item.ID)
				}
				if cursor = page.Next; cursor == "" {
					break
				}
				h.ask("other", "GET", fmt.Sprintf("%s?limit=%d&cursor=%s", list, limit, cursor), nil).problem(client.BadCursor)
				h.ask("reader", "GET", fmt.Sprintf("%s?limit=%d&skill=greeter&cursor=%s", list, limit, cursor), nil).problem(client.BadCursor)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in parts of %d: %v, want %v", list, limit, got, want)
			}
		}
	}
	var none client.Page[client.Run]
	if h.ask("reader", "GET", "/v1/runs?skill=nobody", nil).into(200, &none); len(none.Items) != 0 {
		t.Errorf("of another skill there are %+v", none.Items)
	}
	var page client.Page[client.Run]
	if h.ask("reader", "GET", "/v1/runs", nil).into(200, &page); page.Items[0].Stdout != nil || page.Items[0].Outputs != nil {
		t.Errorf("the list has output: %+v", page.Items[0])
	}
}

// The record of a call reads the same over the API as it does anywhere else.
func TestCallsAreRecords(t *testing.T) {
	h := newHouse(t)
	h.grant("acme")
	var run client.Run
	h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
	r, err := h.store.Call(t.Context(), "acme", run.ID)
	h.must(err)
	want, err := json.Marshal(r)
	h.must(err)
	got := h.ask("reader", "GET", "/v1/calls/"+run.ID, nil).into(200, &client.Call{})
	var a, b map[string]any
	h.must(errors.Join(json.Unmarshal(want, &a), json.Unmarshal(got.body, &b)))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	h.ask("other", "GET", "/v1/calls/"+run.ID, nil).problem(client.NotFound)
}

// Cases 15 and 16, W06: a body that is not exactly what a run takes is refused, each with
// its code, before anything is asked of a gate.
func TestRunBodies(t *testing.T) {
	h := newHouse(t)
	h.grant("acme")
	const whole = `"skill":"greeter","script":"scripts/hello.py"`
	for _, tt := range []struct {
		name, body string
		code       client.Code
	}{
		{"nothing", "", client.BadRequest},
		{"no JSON", "skill=greeter", client.BadRequest},
		{"a list", "[]", client.BadRequest},
		{"two values", "{" + whole + "}{}", client.BadRequest},
		{"a name twice", "{" + whole + `,"skill":"greeter"}`, client.BadRequest},
		{"a name in another case", "{" + whole + `,"SKILL":"greeter"}`, client.BadRequest},
		{"a name that folds to another", `{"ſkill":"greeter","script":"scripts/hello.py"}`, client.BadRequest},
		{"a tenant", "{" + whole + `,"tenant":"globex"}`, client.BadRequest},
		{"two tenants", `{"tenant":"a","TENANT":"b"}`, client.BadRequest},
		{"an environment", "{" + whole + `,"env":{"A":"b"}}`, client.BadRequest},
		{"a folder to run in", "{" + whole + `,"cwd":"/"}`, client.BadRequest},
		{"an interpreter", "{" + whole + `,"interpreter":"/bin/sh"}`, client.BadRequest},
		{"an id of its own", "{" + whole + `,"id":"01a22a5d-8f31-7b1f-b11c-d0382acd83bf"}`, client.BadRequest},
		{"a lone surrogate", `{"skill":"\ud800","script":"scripts/hello.py"}`, client.BadRequest},
		{"bytes that are no UTF-8", "{\"skill\":\"\xff\",\"script\":\"a\"}", client.BadRequest},
		{"too deep", "{" + whole + `,"arguments":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", client.BadRequest},
		{"no base64", "{" + whole + `,"inputs":[{"path":"a","data":"*"}]}`, client.BadRequest},
		{"no skill", `{"script":"scripts/hello.py"}`, client.Invalid},
		{"a long script", `{"skill":"greeter","script":"` + strings.Repeat("a", 513) + `"}`, client.Invalid},
		{"too many files", "{" + whole + `,"inputs":[` + strings.TrimSuffix(strings.Repeat(`{"path":"a","data":""},`, 2049), ",") + "]}", client.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := h.ask("operator", "POST", "/v1/runs", tt.body).problem(tt.code)
			if len(fmt.Sprint(p)) > 2000 {
				t.Errorf("the answer is long: %+v", p)
			}
		})
	}
	h.ask("operator", "POST", "/v1/runs", "{"+whole+"}", "Content-Type", "").problem(client.UnsupportedMediaType)
	h.ask("operator", "POST", "/v1/runs", "{"+whole+"}", "Content-Encoding", "gzip").problem(client.UnsupportedMediaType)
	h.ask("operator", "POST", "/v1/runs?tenant=globex", "{"+whole+"}").problem(client.Invalid)
	if calls, err := h.store.Calls(t.Context(), "acme", toolcall.Filter{}); err != nil || len(calls) != 0 {
		t.Errorf("there are calls: %+v, %v", calls, err)
	}
}

// B10, W06: whoever does not say how much it sends may send little, and nobody more than
// the most that a call can need.
func TestRunBodyBounds(t *testing.T) {
	h := newHouse(t)
	for _, tt := range []struct {
		name   string
		length int64
		body   string
	}{
		{"of unknown length", -1, strings.Repeat(" ", DefaultMaxBody+1)},
		{"too large by its own words", maxRunBody + 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/runs", strings.NewReader(tt.body))
			req.ContentLength = tt.length
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer operator")
			rec := httptest.NewRecorder()
			h.handler.ServeHTTP(rec, req)
			reply{h, tt.name, rec.Code, rec.Header(), rec.Body.Bytes()}.problem(client.TooLarge)
		})
	}
}

// Usage is counted in the store by day and skill, and goes on in parts; another
// tenant's is its own.
func TestUsage(t *testing.T) {
	h := newHouse(t)
	h.grant("globex")
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	zero := 0
	var want []client.Usage
	for d := range 3 {
		for _, skill := range []string{"a b", "c"} {
			at := day.AddDate(0, 0, 2-d)
			h.commitCall(toolcall.Record{ID: id.New(), Tenant: "acme", Skill: skill, Ended: at, ExitCode: &zero, StdoutBytes: 5, Duration: 1500 * time.Millisecond, Waited: time.Second})
			want = append(want, client.Usage{Day: at.Format(time.DateOnly), Skill: skill, Calls: 1, Succeeded: 1, DurationSeconds: 1.5, WaitedSeconds: 1, OutputBytes: 5})
		}
	}
	for _, limit := range []int{1, 2, 4, 6, 100} {
		var got []client.Usage
		for cursor := ""; ; {
			var page client.Page[client.Usage]
			h.ask("reader", "GET", fmt.Sprintf("/v1/usage?limit=%d&cursor=%s", limit, cursor), nil).into(200, &page)
			got = append(got, page.Items...)
			if cursor = page.Next; cursor == "" {
				break
			}
			h.ask("other", "GET", "/v1/usage?cursor="+cursor, nil).problem(client.BadCursor)
		}
		if !slices.Equal(got, want) {
			t.Errorf("in parts of %d: %+v, want %+v", limit, got, want)
		}
	}
	for query, n := range map[string]int{"?skill=c": 3, "?from=2026-03-02": 4, "?to=2026-03-01": 2, "?from=2026-03-02&to=2026-03-02&skill=c": 1, "?skill=nobody": 0} {
		var page client.Page[client.Usage]
		if h.ask("reader", "GET", "/v1/usage"+query, nil).into(200, &page); len(page.Items) != n {
			t.Errorf("%s: %+v, want %d", query, page.Items, n)
		}
	}
	h.ask("reader", "GET", "/v1/usage?from=yesterday", nil).problem(client.Invalid)
	h.ask("other", "POST", "/v1/runs", hello).into(200, nil)
	var page client.Page[client.Usage]
	if h.ask("other", "GET", "/v1/usage", nil).into(200, &page); len(page.Items) != 1 || page.Items[0].Calls != 1 || page.Items[0].Succeeded != 1 {
		t.Errorf("the other tenant's usage is %+v", page.Items)
	}
}
