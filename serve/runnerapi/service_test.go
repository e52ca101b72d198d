package runnerapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/wire"
)

// peers knows two peers by their bearer tokens.
type peers struct{}

func (peers) Peer(r *http.Request) (gate.Peer, string, error) {
	switch r.Header.Get("Authorization") {
	case "Bearer one":
		return gate.Peer{Name: "one", Tenants: []string{"acme", "beta"}}, "k1", nil
	case "Bearer two":
		return gate.Peer{Name: "two", Tenants: []string{"gamma"}}, "k2", nil
	case "Bearer all":
		return gate.Peer{Name: "all", AllTenants: true}, "k3", nil
	}
	return gate.Peer{}, "", runnerapi.ErrStranger
}

// service is one runner service over exec, and its log.
type service struct {
	*runnerapi.Service
	http   *httptest.Server
	log    *audit.Log
	store  *memstore.Store
	runner *tracon.Runner
}

func newService(t *testing.T, exec executor.Func, change func(*runnerapi.Config, *tracon.Config, *gate.Reception)) *service {
	t.Helper()
	s := newCore(t, exec, change)
	s.http = httptest.NewServer(s.Handler())
	t.Cleanup(func() { // before the runner is closed
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// newCore is newService without HTTP.
func newCore(t *testing.T, exec executor.Func, change func(*runnerapi.Config, *tracon.Config, *gate.Reception)) *service {
	t.Helper()
	st := memstore.New()
	s := &service{log: audit.NewLog(st), store: st}
	python := "/usr/bin/python3"
	if runtime.GOOS == "windows" {
		python = `C:\python3.exe`
	}
	in := gate.Runtime{Interpreter: gate.Interpreter{Path: python}, Extension: "py"}
	reception := gate.Reception{Enabled: true, Runtimes: map[string]gate.Runtime{"python-3.12": in}}
	quiet := slog.New(slog.DiscardHandler)
	tc := tracon.Config{Executor: exec, Calls: st, Logger: quiet, Slots: 4, SlotsPerTenant: 2}
	rc := runnerapi.Config{Name: "runner-1", Peers: peers{}, Limiter: limit.New(limit.Config{}), Logger: quiet}
	if change != nil {
		change(&rc, &tc, &reception)
	}
	tc.Gate = gate.NewReceiver(gate.Receiving(reception), nil, s.log, "")
	var err error
	if s.runner, err = tracon.New(tc); err != nil {
		t.Fatal(err)
	}
	rc.Runner, rc.Receptions = s.runner, gate.Receiving(reception)
	if s.Service, err = runnerapi.New(rc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.runner.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = st.Close()
	})
	return s
}

// echo tells what it was given.
func echo(_ context.Context, req executor.Request) (executor.Result, error) {
	out := fmt.Sprintf("%s %s %s %q %q %s", req.Tenant(), req.Script(), req.Mode(), req.Words(), req.Stdin(), req.Timeout())
	return executor.Result{Ending: executor.Exited(3), Stdout: []byte(out), Stderr: []byte("err")}, nil
}

func sum(s string) string { d := sha256.Sum256([]byte(s)); return hex.EncodeToString(d[:]) }

// send asks by plain HTTP, as a client does that knows R28 alone.
func (s *service) send(t *testing.T, method, path, token, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

const source = "print('hi')\n"

func plain(tenant string) string {
	return `{"tenant":"` + tenant + `","runtime":"python-3.12","source":"print('hi')\n","sourceSha256":"` + sum(source) + `","standardInput":"{}","timeoutSeconds":1.5,"maxOutputBytes":1000}`
}

// R28, R30: a client that knows that wire alone, in either case of its members, has
// scripts run, and its answer has nothing else.
func TestPlainWire(t *testing.T) {
	s := newService(t, echo, nil)
	pascal := `{"Tenant":"acme","RUNTIME":"python-3.12","Source":"print('hi')\n","SourceSHA256":"` + strings.ToUpper(sum(source)) +
		`","StandardInput":"{}","TimeoutSeconds":1.5,"MaxOutputBytes":1000,"somethingElse":{"a":[1]}}`
	for name, body := range map[string]string{"camelCase": plain("acme"), "PascalCase": pascal} {
		status, _, text := s.send(t, "POST", "/runs", "one", body)
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
			t.Fatalf("%s: status %d, %s", name, status, text)
		}
		want := map[string]any{"exitCode": 3.0, "standardOutput": `acme script.py stdin [] "{}" 1.5s`, "standardError": "err", "truncated": false, "timedOut": false}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// R28: what became of a script that did not exit by itself.
func TestPlainEndings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ending executor.Ending
		want   string
	}{
		{"timed out", executor.Expired(), `"exitCode":null,"standardOutput":"","standardError":"","truncated":false,"timedOut":true`},
		{"a signal", executor.Signaled(15), `"exitCode":143,`},
		{"out of memory", executor.OutOfMemory(), `"exitCode":137,`},
		{"a forbidden call", executor.PolicyViolation(), `"exitCode":159,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: tt.ending}, nil
			}, nil)
			if _, _, text := s.send(t, "POST", "/runs", "one", plain("acme")); !strings.Contains(text, tt.want) {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

// R28, R29, M12: what is not let through, with its status, its code, and the word that
// nothing was started; the executor is not called.
func TestRefusals(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(plain("acme"), from, to, 1) }
	tests := []struct {
		name, token, body string
		status            int
		code              string
	}{
		{"no key", "", plain("acme"), 401, "unauthenticated"},
		{"a wrong key", "three", plain("acme"), 401, "unauthenticated"},
		{"another peer's tenant", "two", plain("acme"), 403, "grant"},
		{"the other way about", "one", plain("gamma"), 403, "grant"},
		{"an unknown runtime", "one", change("python-3.12", "python-3.13"), 422, "interpreter"},
		{"a path as runtime", "one", change("python-3.12", "/usr/bin/python3"), 400, "malformed"},
		{"a digest of other bytes", "one", change(sum(source), sum("x")), 422, "pin"},
		{"a timeout above the limit", "one", change("1.5", "601"), 422, "arguments"},
		{"a timeout of zero", "one", change("1.5", "0"), 400, "malformed"},
		{"output above the limit", "one", change(":1000}", ":99999999}"), 422, "arguments"},
		{"a member twice but for its case", "one", change(`"tenant"`, `"Tenant":"beta","tenant"`), 400, "malformed"},
		{"a member that is not known twice", "one", change(`"tenant"`, `"x":1,"X":2,"tenant"`), 400, "malformed"},
		{"not JSON", "one", "hello", 400, "malformed"},
		{"nothing", "one", "", 400, "malformed"},
		{"two values", "one", plain("acme") + plain("acme"), 400, "malformed"},
		{"a closure that is not here", "one", change(`"tenant"`, `"tracon":{"id":"x","skill":"s","script":"a.py","mode":"argv","bundle":"sha256:`+sum("x")+`"},"tenant"`), 409, "bundle_unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
				t.Error("the executor is called")
				return executor.Result{}, errors.New("no")
			}, nil)
			status, _, text := s.send(t, "POST", "/runs", tt.token, tt.body)
			p, err := wire.ReadProblem(strings.NewReader(text))
			if err != nil || status != tt.status || p.Code != tt.code || !p.NotStarted || p.Status != status {
				t.Errorf("got %d %s (%v), want %d %s and notStarted", status, text, err, tt.status, tt.code)
			}
		})
	}
}

// closure is a run with everything that R28 has no member for.
func closure(t *testing.T, files ...bundle.File) (wire.Run, bundle.Bundle) {
	t.Helper()
	b, err := bundle.New(files, []byte("declared"), bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := b.Text("scripts/run.py")
	return wire.Run{Tenant: "acme", Runtime: "python-3.12", SourceSHA256: script.Hex(), TimeoutSeconds: 2, MaxOutputBytes: 1000, More: &wire.More{
		ID: "019e9d3c-0000-7000-8000-000000000001", Actor: "somebody", Grant: "their-grant", Skill: "s", Script: "scripts/run.py", Mode: "argv",
		Bundle: b.Digest().String(), Words: []string{"--x", "1"}, Inputs: []wire.File{{Path: "in.txt", Data: []byte("in")}},
		OutputPatterns: []string{"*.txt"}, MaxOutputsBytes: 100, MaxOutputFiles: 2, Memory: 64 << 20, Processes: 8,
		Environment: []wire.Variable{{Name: "TENANT", Value: "x"}}, Tier: "process",
	}}, b
}

// R30, B1: the whole closure, uploaded once, and everything beside it, reaches the
// executor; the answer tells which run it is of, and how it stood.
func TestFullWire(t *testing.T) {
	var got executor.Request
	s := newService(t, func(_ context.Context, req executor.Request) (executor.Result, error) {
		got = req
		return executor.Result{Ending: executor.Signaled(9), Stdout: []byte("a\xffb"), Outputs: []bundle.File{{Path: "outputs/o.txt", Data: []byte("o")}}, Notes: []string{"note"}}, nil
	}, nil)
	run, b := closure(t, bundle.File{Path: "scripts/run.py", Data: []byte("import lib\n")}, bundle.File{Path: "scripts/lib.py", Data: []byte("\xff")})
	body, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := "/bundles/" + b.Digest().String()
	up, err := wire.ClosureOf(b).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if status, _, text := s.send(t, "POST", "/runs", "one", string(body)); status != 409 {
		t.Fatalf("before the upload: %d %s", status, text)
	}
	if status, _, _ := s.send(t, "HEAD", path, "one", ""); status != 404 {
		t.Errorf("HEAD before the upload: %d", status)
	}
	if status, _, text := s.send(t, "PUT", path, "one", string(up)); status != 204 {
		t.Fatalf("the upload: %d %s", status, text)
	}
	if status, _, _ := s.send(t, "HEAD", path, "one", ""); status != 200 {
		t.Errorf("HEAD behind the upload: %d", status)
	}
	if status, _, _ := s.send(t, "HEAD", path, "two", ""); status != 404 {
		t.Errorf("M12: another peer learns of the upload: %d", status)
	}
	if status, _, text := s.send(t, "PUT", "/bundles/sha256:"+sum("x"), "one", string(up)); status != 422 || !strings.Contains(text, `"pin"`) {
		t.Errorf("the upload under another digest: %d %s", status, text)
	}
	status, _, text := s.send(t, "POST", "/runs", "one", string(body))
	a, err := wire.ReadAnswer(strings.NewReader(text), 0)
	if status != 200 || err != nil {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	stdout, _ := a.Streams()
	m := a.More
	if string(stdout) != "a\xffb" || a.StandardOutput != "a\uFFFDb" || *a.ExitCode != 137 || m.ID != run.More.ID || m.Bundle != run.More.Bundle ||
		m.Ending != (wire.Ending{Kind: "signaled", Signal: 9}) || len(m.Outputs) != 1 || m.Notes[0] != "note" || m.Tier != "process" || !m.Claimed {
		t.Errorf("the answer is %+v with %+v", a, m)
	}
	in, _ := got.Inputs().ReadFile("in.txt")
	bytes, files := got.MaxOutputs()
	if got.Digest() != b.Digest() || got.Script() != "scripts/run.py" || fmt.Sprint(got.Words()) != "[--x 1]" || string(in) != "in" || bytes != 100 || files != 2 ||
		got.Memory() != 64<<20 || got.Processes() != 8 || got.Environment()["TENANT"] != "x" || got.OutputPatterns()[0] != "*.txt" {
		t.Errorf("the executor got another run: %v", got)
	}
	leaf, err := s.log.Leaf(t.Context(), m.LogIndex)
	if err != nil || leaf.Entry.Fact("toldRun") != run.More.ID || leaf.Entry.Fact("peer") != "one" {
		t.Errorf("the log at %d has %+v, %v", m.LogIndex, leaf.Entry, err)
	}
}

// A small closure travels within the run, and counts by its digest alone.
func TestInlineClosure(t *testing.T) {
	s := newService(t, echo, nil)
	run, b := closure(t, bundle.File{Path: "scripts/run.py", Data: []byte("pass\n")})
	run.More.Files, run.More.Declaration = wire.FilesOf(b.Files()), b.Declaration()
	a, err := s.Run(t.Context(), gate.Peer{Name: "one", Tenants: []string{"acme"}}, run, bundle.Bundle{}, nil)
	if err != nil || a.More.Ending != (wire.Ending{Kind: "exited", Code: 3}) {
		t.Errorf("as it is: %+v, %v", a.More, err)
	}
	if _, err := s.Run(t.Context(), gate.Peer{Name: "one", Tenants: []string{"acme"}}, run, bundle.Bundle{}, nil); !errors.Is(err, runnerapi.ErrRepeated) || s.Problem(run, err).NotStarted {
		t.Errorf("R21: the same run again: %v, want ErrRepeated, and not that nothing started", err)
	}
	run.More.ID += "x"
	run.More.Files[0].Data = []byte("evil\n")
	_, err = s.Run(t.Context(), gate.Peer{Name: "one", Tenants: []string{"acme"}}, run, bundle.Bundle{}, nil)
	if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.PinGate {
		t.Errorf("with other bytes: got %v, want a denial of gate pin", err)
	}
	run.More.Files[0].Data = []byte("pass\n")
	if _, err := s.Run(t.Context(), gate.Peer{Name: "one", Tenants: []string{"acme"}}, run, bundle.Bundle{}, nil); err != nil {
		t.Errorf("mended, behind a refusal: %v", err)
	}
}

// R24: a caller who hangs up has its run stopped, and the log says cancelled.
func TestHangUp(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	s := newService(t, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return executor.Result{}, context.Cause(ctx)
	}, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.http.URL+"/runs", strings.NewReader(plain("acme")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer one")
	go func() {
		<-began
		hangUp()
	}()
	if _, err := s.http.Client().Do(req); err == nil {
		t.Fatal("there is an answer")
	}
	<-ended
	if err := s.runner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var endings []string
	for leaf, err := range s.log.Entries(t.Context(), "acme", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Kind == audit.Ending {
			endings = append(endings, leaf.Entry.Fact("ending"))
		}
	}
	if fmt.Sprint(endings) != "[cancelled]" {
		t.Errorf("the endings are %v, want cancelled", endings)
	}
}

// B10: where there is no slot the answer is 503 with Retry-After and says that nothing
// was started; a drained runner says so too, and lets what runs go on.
func TestBusyAndDrain(t *testing.T) {
	began, let := make(chan struct{}, 9), make(chan struct{})
	s := newService(t, func(_ context.Context, req executor.Request) (executor.Result, error) {
		began <- struct{}{}
		<-let
		return executor.Result{Ending: executor.Exited(0)}, nil
	}, func(_ *runnerapi.Config, c *tracon.Config, _ *gate.Reception) {
		c.Slots, c.SlotsPerTenant, c.QueuePerTenant, c.SlotWait = 2, 1, 1, time.Hour
	})
	codes, order := make(chan int, 2), run(t, plain("acme"))
	start := func() {
		a, err := s.Run(context.Background(), gate.Peer{Name: "one", Tenants: []string{"acme"}}, order, bundle.Bundle{}, nil)
		if err != nil {
			t.Error(err)
			codes <- -1
			return
		}
		codes <- *a.ExitCode
	}
	go start()
	<-began
	go start() // has the one place of those that wait
	for s.runner.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	status, h, text := s.send(t, "POST", "/runs", "one", plain("acme"))
	p, err := wire.ReadProblem(strings.NewReader(text))
	if status != 503 || h.Get("Retry-After") == "" || err != nil || p.Code != "busy" || !p.NotStarted || p.RetryAfterSeconds < 1 {
		t.Errorf("without a slot: %d %v %s", status, h, text)
	}
	s.Drain()
	if status, h, text := s.send(t, "POST", "/runs", "one", plain("beta")); status != 503 || h.Get("Retry-After") == "" || !strings.Contains(text, `"draining"`) {
		t.Errorf("draining: %d %s", status, text)
	}
	if status, _, _ := s.send(t, "GET", "/readyz", "", ""); status != 503 {
		t.Errorf("readyz of a runner that drains: %d", status)
	}
	if status, _, _ := s.send(t, "GET", "/healthz", "", ""); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	close(let)
	if a, b := <-codes, <-codes; a != 0 || b != 0 {
		t.Errorf("the runs under way ended with %d and %d", a, b)
	}
}

func run(t testing.TB, text string) wire.Run {
	t.Helper()
	r, err := wire.ReadRun(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// B2, M09: info tells the posture, and that it is claimed where nobody proved it.
func TestInfo(t *testing.T) {
	s := newService(t, echo, nil)
	if status, _, _ := s.send(t, "GET", "/info", "", ""); status != 401 {
		t.Errorf("without a key: %d", status)
	}
	_, _, text := s.send(t, "GET", "/info", "one", "")
	i, err := wire.ReadInfo(strings.NewReader(text))
	if err != nil || !i.Knows() || i.Name != "runner-1" || len(i.Runtimes) != 1 || i.Runtimes[0] != (wire.Runtime{Name: "python-3.12", Extension: "py"}) ||
		i.Tier != string(grant.Process) || !i.Claimed || i.Slots != 4 || i.SlotsPerTenant < 1 || i.SlotsPerTenant > 4 || i.Limits.TimeoutSeconds != 600 {
		t.Errorf("got %s, %v", text, err)
	}
	if strings.Contains(text, "/usr/bin") {
		t.Errorf("it tells a path of this host: %s", text)
	}
}

// R26: what an executor says of its failure stays here, and whoever asked learns that
// the script may have run (M06).
func TestExecutorFails(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		status  int
		code    string
		started bool
	}{
		{"it failed", errors.New("secret-path"), 500, "executor_failed", true},
		{"it could not start", fmt.Errorf("%w: secret-path", executor.ErrUnavailable), 503, "executor_unavailable", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, tt.err }, nil)
			status, _, text := s.send(t, "POST", "/runs", "one", plain("acme"))
			p, err := wire.ReadProblem(strings.NewReader(text))
			if err != nil || status != tt.status || p.Code != tt.code || p.NotStarted == tt.started || strings.Contains(text, "secret-path") {
				t.Errorf("got %d %s", status, text)
			}
		})
	}
}

// B10: a peer whose requests take all the room that one has is told to wait; another
// is let in.
func TestBodiesAreBounded(t *testing.T) {
	began, let := make(chan struct{}, 9), make(chan struct{})
	s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
		began <- struct{}{}
		<-let
		return executor.Result{Ending: executor.Exited(0)}, nil
	}, func(c *runnerapi.Config, _ *tracon.Config, _ *gate.Reception) {
		c.BodyBytes = int64(3 * len(plain("acme")))
	})
	done := make(chan int, 2)
	post := func(token, tenant string) {
		req, err := http.NewRequestWithContext(context.Background(), "POST", s.http.URL+"/runs", bytes.NewReader([]byte(plain(tenant))))
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+token)
			var res *http.Response
			if res, err = s.http.Client().Do(req); err == nil {
				done <- res.StatusCode
				_ = res.Body.Close()
				return
			}
		}
		t.Error(err)
		done <- 0
	}
	go post("one", "acme")
	<-began
	if status, _, text := s.send(t, "POST", "/runs", "one", plain("beta")); status != 503 || !strings.Contains(text, `"busy"`) {
		t.Errorf("above its share: %d %s", status, text)
	}
	go post("two", "gamma")
	<-began
	close(let)
	if a, b := <-done, <-done; a != 200 || b != 200 {
		t.Errorf("those with room got %d and %d", a, b)
	}
	if status, _, text := s.send(t, "PUT", "/bundles/sha256:"+sum("x"), "one", strings.Repeat(" ", 1000)+`{"files":[]}`); status != 503 && status != 400 {
		t.Errorf("a closure without files: %d %s", status, text)
	}
}

// Web pages have no business here, and what is not there is said plainly.
func TestOtherRequests(t *testing.T) {
	s := newService(t, echo, nil)
	if status, _, _ := s.send(t, "GET", "/runs", "one", ""); status != 404 && status != 405 {
		t.Errorf("GET runs: %d", status)
	}
	if status, _, _ := s.send(t, "GET", "/metrics", "one", ""); status != 403 {
		t.Errorf("metrics for one peer: %d", status)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/runs", strings.NewReader(plain("acme")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer one")
	req.Header.Set("Origin", "https://example.com")
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a request of a web page: %d", res.StatusCode)
	}
}

// namesakes are two peers with one name.
type namesakes struct{}

func (namesakes) Peer(r *http.Request) (gate.Peer, string, error) {
	return gate.Peer{Name: "prod", Tenants: []string{strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}}, "k", nil
}

// T09: peers with one name that are let in for other tenants share no closure: none
// learns that another's is here, and none runs it.
func TestNamesakesShareNothing(t *testing.T) {
	s := newService(t, echo, func(c *runnerapi.Config, _ *tracon.Config, _ *gate.Reception) { c.Peers = namesakes{} })
	run, b := closure(t, bundle.File{Path: "scripts/run.py", Data: []byte("pass\n")})
	up, err := wire.ClosureOf(b).Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := "/bundles/" + b.Digest().String()
	if status, _, text := s.send(t, "PUT", path, "acme", string(up)); status != 204 {
		t.Fatalf("the upload: %d %s", status, text)
	}
	for tenant, want := range map[string]int{"acme": 200, "beta": 404} {
		if status, _, _ := s.send(t, "HEAD", path, tenant, ""); status != want {
			t.Errorf("T09: HEAD by the key of %s: %d, want %d", tenant, status, want)
		}
	}
	run.Tenant = "beta"
	body, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if status, _, text := s.send(t, "POST", "/runs", "beta", string(body)); status != 409 || !strings.Contains(text, "bundle_unknown") {
		t.Errorf("T09: beta runs acme's closure: %d %s", status, text)
	}
}

// T11, O02: metrics are for a peer of all tenants alone.
func TestMetrics(t *testing.T) {
	s := newService(t, echo, func(c *runnerapi.Config, _ *tracon.Config, _ *gate.Reception) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") })
	})
	for token, want := range map[string]int{"": 401, "one": 403, "two": 403, "all": 200} {
		if status, _, text := s.send(t, "GET", "/metrics", token, ""); status != want || strings.Contains(text, "up 1") != (want == 200) {
			t.Errorf("metrics for %q: %d %s, want %d", token, status, text, want)
		}
	}
}

// renamed is a peer whose credential is another's when it says so.
type renamed struct{ now atomic.Pointer[string] }

func (p *renamed) Peer(*http.Request) (gate.Peer, string, error) {
	return gate.Peer{Name: *p.now.Load(), AllTenants: true}, "k", nil
}

// T11: a run that waits for its slot while its credential becomes another peer's never
// runs.
func TestKeyOfAnotherWhileWaiting(t *testing.T) {
	began, let, key := make(chan struct{}, 9), make(chan struct{}), &renamed{}
	one, two := "one", "two"
	key.now.Store(&one)
	s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
		began <- struct{}{}
		<-let
		return executor.Result{Ending: executor.Exited(0)}, nil
	}, func(c *runnerapi.Config, r *tracon.Config, _ *gate.Reception) {
		c.Peers, r.Slots, r.SlotWait = key, 1, time.Hour
	})
	codes := make(chan int, 2)
	post := func() {
		res, err := s.http.Client().Post(s.http.URL+"/runs", "application/json", strings.NewReader(plain("acme")))
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		_ = res.Body.Close()
		codes <- res.StatusCode
	}
	go post()
	<-began
	go post()
	for s.runner.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	key.now.Store(&two)
	close(let)
	if a, b := <-codes, <-codes; a+b != 200+403 {
		t.Errorf("they got %d and %d, want 200 for the one that ran and 403 for the one that waited", a, b)
	}
}

// turncoat is a peer whose key is revoked when it says so.
type turncoat struct{ revoked atomic.Bool }

func (p *turncoat) Peer(r *http.Request) (gate.Peer, string, error) {
	if p.revoked.Load() {
		return gate.Peer{}, "", runnerapi.ErrStranger
	}
	return gate.Peer{Name: r.Header.Get("Authorization"), AllTenants: true}, "k", nil
}

// T11: a run that waits for its slot while its peer's key is revoked never runs; the
// one that has its slot goes on.
func TestKeyRevokedWhileWaiting(t *testing.T) {
	began, let, key := make(chan struct{}, 9), make(chan struct{}), &turncoat{}
	s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
		began <- struct{}{}
		<-let
		return executor.Result{Ending: executor.Exited(0)}, nil
	}, func(c *runnerapi.Config, r *tracon.Config, _ *gate.Reception) {
		c.Peers, r.Slots, r.SlotWait = key, 1, time.Hour
	})
	codes := make(chan int, 1)
	post := func() {
		res, err := s.http.Client().Post(s.http.URL+"/runs", "application/json", strings.NewReader(plain("acme")))
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		_ = res.Body.Close()
		codes <- res.StatusCode
	}
	key.revoked.Store(false)
	s.http.Client().Transport = named{s.http.Client().Transport}
	go post()
	<-began
	go post()
	for s.runner.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	key.revoked.Store(true)
	close(let)
	if a, b := <-codes, <-codes; a+b != 200+403 {
		t.Errorf("they got %d and %d, want 200 for the one that ran and 403 for the one that waited", a, b)
	}
}

// named sends each request as the peer "one".
type named struct{ http.RoundTripper }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "one")
	return n.RoundTripper.RoundTrip(r)
}

// R28, B10: clients that do not say how long a body is, as many libraries do, take as
// much room as it has; what is announced and not sent takes none.
func TestBodiesCountAsTheyCome(t *testing.T) {
	began, let := make(chan struct{}, 9), make(chan struct{})
	s := newService(t, func(context.Context, executor.Request) (executor.Result, error) {
		began <- struct{}{}
		<-let
		return executor.Result{Ending: executor.Exited(0)}, nil
	}, nil)
	codes := make(chan int, 2)
	for range 2 {
		go func() {
			req, err := http.NewRequestWithContext(context.Background(), "POST", s.http.URL+"/runs", io.MultiReader(strings.NewReader(plain("acme"))))
			if err == nil {
				req.Header.Set("Authorization", "Bearer one")
				var res *http.Response
				if res, err = s.http.Client().Do(req); err == nil {
					_ = res.Body.Close()
					codes <- res.StatusCode
					return
				}
			}
			t.Error(err)
			codes <- 0
		}()
	}
	body, silent := io.Pipe() // announced, and never sent
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/runs", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = wire.MaxRun
	req.Header.Set("Authorization", "Bearer one")
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		if res, err := s.http.Client().Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-began
	<-began
	close(let)
	if a, b := <-codes, <-codes; a != 200 || b != 200 {
		t.Errorf("they got %d and %d, want 200 each", a, b)
	}
	_ = silent.CloseWithError(errors.New("the client gives up"))
	<-quiet
	if status, _, text := s.send(t, "POST", "/runs", "one", strings.Repeat(" ", 10)); status != 400 {
		t.Errorf("blanks alone: %d %s", status, text)
	}
}
