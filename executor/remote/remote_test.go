package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

const testKey = "a-key-of-the-runner"

// open returns an executor that asks the address.
func open(t testing.TB, address string, change func(*remote.Config)) *remote.Executor {
	t.Helper()
	c := remote.Config{Address: address, Reach: []string{"loopback"}, Key: func() (string, error) { return testKey, nil }}
	if change != nil {
		change(&c)
	}
	e, err := remote.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// admit returns a request for a script that is alone and reads standard input.
func admit(t testing.TB, change func(*executortest.Order)) executor.Request {
	t.Helper()
	o := executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main.sh", Data: []byte("cat; echo err >&2; exit 3\n")}},
		Script: "main.sh", Mode: gate.Stdin, Arguments: map[string]string{"a": "b"}, Policy: gate.Policy{Timeout: time.Minute, MaxOutput: 4096, MaxOutputs: 4096, MaxOutputFiles: 2},
	}
	if change != nil {
		change(&o)
	}
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Name: "host-sh"}}).Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A fake is a runner that misbehaves at POST runs, and tells of itself as it should.
type fake struct {
	*httptest.Server
	runs atomic.Int64 // how often runs was asked
}

const knows = `{"name":"runner-1","protocols":["tracon/1"],"tier":"process","claimed":true,"maxInline":65536}`

func newFake(t testing.TB, info string, runs http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) {
		if info == "" {
			http.NotFound(w, nil)
			return
		}
		_, _ = io.WriteString(w, info)
	})
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) { f.runs.Add(1); runs(w, r) })
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// good returns the answer to the run, changed.
func good(t testing.TB, r *http.Request, change func(*wire.Answer)) []byte {
	t.Helper()
	run, err := wire.ReadRun(r.Body, 0)
	if err != nil {
		t.Error(err)
		return nil
	}
	code := 0
	a := wire.Answer{ExitCode: &code}
	if run.More != nil {
		a.More = &wire.AnswerMore{ID: run.More.ID, Bundle: run.More.Bundle, Ending: wire.Ending{Kind: "exited"}, Tier: "process"}
	}
	if change != nil {
		change(&a)
	}
	b, err := a.Encode()
	if err != nil {
		t.Error(err)
	}
	return b
}

func answering(t testing.TB, change func(*wire.Answer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(good(t, r, change)) }
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Case 54, M01, M02, M05, M06, R26, R29: whatever a runner does, the run ends, as an error that
// is told apart from the others, says whether the script may have run, and was asked
// for once (R21).
func TestCase54(t *testing.T) {
	other := strings.Repeat("0", 64)
	long := func(w http.ResponseWriter, r *http.Request, every time.Duration, piece string) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"exitCode":0,"standardOutput":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			if every > 0 {
				select {
				case <-r.Context().Done():
				case <-time.After(every):
				}
			}
		}
	}
	hangUp := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	tests := []struct {
		name    string
		runs    http.HandlerFunc
		kind    remote.Kind
		unknown bool
	}{
		{"M06: status 500", status(500, "it failed"), remote.Status, true},
		{"M06: status 503 of somebody in between", status(503, "upstream"), remote.Status, true},
		{"M06: status 429 of somebody in between", status(429, ""), remote.Status, true},
		{"503, and the runner says that nothing started", status(503, `{"status":503,"code":"busy","detail":"no slot","notStarted":true,"retryAfterSeconds":2}`), remote.Busy, false},
		{"503, and the runner does not say so", status(503, `{"status":503,"code":"audit_unavailable","detail":"x"}`), remote.Status, true},
		{"a gate of the runner", status(422, `{"status":422,"code":"pin","detail":"x","notStarted":true}`), remote.Refused, false},
		{"401", status(401, ""), remote.Refused, false},
		{"404", status(404, ""), remote.Refused, false},
		{"R29: empty", status(200, ""), remote.Garbled, true},
		{"R29: no content", status(204, ""), remote.Garbled, true},
		{"R29: not JSON", status(200, "<html>"), remote.Garbled, true},
		{"R29: half of it", status(200, `{"exitCode":0,"standardOutput":"`), remote.Garbled, true},
		{"R28: a member that stands twice", status(200, `{"exitCode":0,"ExitCode":1,"standardOutput":"","standardError":""}`), remote.Garbled, true},
		{"without the further member", status(200, `{"exitCode":0,"standardOutput":"","standardError":""}`), remote.Violation, true},
		{"M01: of another run", answering(t, func(a *wire.Answer) { a.More.ID = "018f0000-0000-7000-8000-000000000000" }), remote.Violation, true},
		{"another digest", answering(t, func(a *wire.Answer) { a.More.Bundle = "sha256:" + other }), remote.Violation, true},
		{"M09: of a tier that is none", answering(t, func(a *wire.Answer) { a.More.Tier = "" }), remote.Violation, true},
		{"a file that nobody asked for", answering(t, func(a *wire.Answer) {
			a.More.Outputs = []wire.File{{Path: "../../etc/passwd", Data: []byte("x")}}
		}), remote.Violation, true},
		{"M02: a file too large", answering(t, func(a *wire.Answer) {
			a.More.Outputs = []wire.File{{Path: "a", Data: make([]byte, 4097)}}
		}), remote.Violation, true},
		{"M02: without an end", func(w http.ResponseWriter, r *http.Request) { long(w, r, 0, strings.Repeat("x", 64<<10)) }, remote.TooLarge, true},
		{"10 GB, as it says", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10000000000")
			long(w, r, 0, strings.Repeat("x", 64<<10))
		}, remote.TooLarge, true},
		{"M05: a redirect", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Redirect(w, r, "/runs", http.StatusTemporaryRedirect)
		}, remote.Status, true},
		{"case 55: hangs up before the header", hangUp, remote.HungUp, true},
		{"case 55: hangs up in the answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"exitCode":0,`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, remote.HungUp, true},
	}
	req := admit(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, knows, tt.runs)
			_, err := open(t, f.URL, nil).Execute(t.Context(), req)
			check(t, err, tt.kind, tt.unknown)
			if n := f.runs.Load(); n != 1 {
				t.Errorf("R21: the runner was asked %d times", n)
			}
		})
	}
	t.Run("refuses the connection", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := "http://" + l.Addr().String()
		_ = l.Close()
		_, err = open(t, address, nil).Execute(t.Context(), req)
		check(t, err, remote.Unreachable, false)
	})
	for name, runs := range map[string]http.HandlerFunc{
		"M02: one byte now and then": func(w http.ResponseWriter, r *http.Request) { long(w, r, 20*time.Millisecond, "x") },
		"never answers":              func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, knows, runs)
			short := admit(t, func(o *executortest.Order) { o.Policy.Timeout = time.Second })
			_, err := open(t, f.URL, func(c *remote.Config) { c.Patience = time.Millisecond }).Execute(t.Context(), short)
			// On a machine that is busy the time may be over before the last byte was sent.
			if g, ok := errors.AsType[*remote.Error](err); ok && g.Kind == remote.Unreachable {
				check(t, err, remote.Unreachable, false)
				if f.runs.Load() != 0 {
					t.Error("the runner had it")
				}
				return
			}
			check(t, err, remote.Silent, true)
		})
	}
}

func check(t *testing.T, err error, kind remote.Kind, unknown bool) {
	t.Helper()
	f, ok := errors.AsType[*remote.Error](err)
	if !ok || f.Kind != kind || f.Unknown != unknown {
		t.Fatalf("got %v, want %q, unknown %t", err, kind, unknown)
	}
	if errors.Is(err, executor.ErrUnknown) != unknown || errors.Is(err, executor.ErrUnavailable) == unknown {
		t.Errorf("%v: wraps the wrong one of ErrUnknown and ErrUnavailable", err)
	}
	if len(err.Error()) > 2048 {
		t.Errorf("the text has %d bytes", len(err.Error()))
	}
}

// R24: the caller's cancellation ends the request and is what is returned, with the
// cause that the caller gave.
func TestCancelled(t *testing.T) {
	enough, gone := errors.New("enough"), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFake(t, knows, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(enough)
		<-r.Context().Done()
		close(gone)
	})
	if _, err := open(t, f.URL, nil).Execute(ctx, admit(t, nil)); err != enough {
		t.Errorf("got %v, want the cause", err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the runner was not told")
	}
}

// M07: a runner that does not heed the end of the request keeps nobody waiting: the host
// has its cause, whatever goes on there.
func TestCancelIsNotHeeded(t *testing.T) {
	enough, over := errors.New("enough"), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFake(t, knows, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(enough)
		<-over
	})
	defer close(over)
	if _, err := open(t, f.URL, nil).Execute(ctx, admit(t, nil)); err != enough {
		t.Errorf("M07: got %v, want the cause while the runner works on", err)
	}
}

// R21: a connection that was used before and breaks under a run is no reason to send
// the run again, whatever net/http thinks of it.
func TestNeverSentAgain(t *testing.T) {
	var asked atomic.Int64
	f := newFake(t, knows, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			_, _ = w.Write(good(t, r, nil))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close() // not a byte of an answer
	})
	e := open(t, f.URL, nil)
	if _, err := e.Execute(t.Context(), admit(t, nil)); err != nil {
		t.Fatal(err)
	}
	_, err := e.Execute(t.Context(), admit(t, nil))
	check(t, err, remote.HungUp, true)
	if n := f.runs.Load(); n != 2 {
		t.Errorf("two runs were asked for %d times", n)
	}
}

// R28, R30: to a runner that does not tell of itself, only the members of R28 are sent,
// with the script's own bytes and digest.
func TestPlainWire(t *testing.T) {
	for name, info := range map[string]string{"no info": "", "another protocol": `{"protocols":["other/1"]}`, "a page": "<html>", "none of a list": `{}`} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, info, func(w http.ResponseWriter, r *http.Request) {
				var got map[string]any
				b, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(b, &got); err != nil {
					t.Error(err)
				}
				sum := sha256.Sum256([]byte("cat; echo err >&2; exit 3\n"))
				if len(got) != 7 || got["sourceSha256"] != hex.EncodeToString(sum[:]) || got["runtime"] != "host-sh" || got["standardInput"] != `{"a":"b"}` ||
					got["timeoutSeconds"] != 60.0 || got["maxOutputBytes"] != 4096.0 || got["source"] != "cat; echo err >&2; exit 3\n" || got["tenant"] == "" {
					t.Errorf("got %s", b)
				}
				if r.Header.Get("Authorization") != "Bearer "+testKey || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("got headers %v", r.Header)
				}
				_, _ = fmt.Fprintf(w, `{"ExitCode":3,"STANDARDOUTPUT":%q,"standardError":"err","truncated":false,"timedOut":false,"more":{"x":1}}`, strings.Repeat("x", 5000))
			})
			res, err := open(t, f.URL, nil).Execute(t.Context(), admit(t, nil))
			if err != nil || res.Ending != executor.Exited(3) || len(res.Stdout) != 4096 || !res.Truncated || string(res.Stderr) != "err" {
				t.Errorf("got %v, %v, %d bytes", err, res.Ending, len(res.Stdout))
			}
		})
	}
}

// R28, R23: "timed out" beside an exit code is timed out.
func TestPlainTimedOut(t *testing.T) {
	f := newFake(t, "", status(200, `{"exitCode":137,"standardOutput":"so far","standardError":"","truncated":false,"timedOut":true}`))
	res, err := open(t, f.URL, nil).Execute(t.Context(), admit(t, nil))
	if err != nil || res.Ending != executor.Expired() || string(res.Stdout) != "so far" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// R30: what the plain wire cannot say is refused, and nothing is sent.
func TestPlainRefusals(t *testing.T) {
	tests := map[string]func(*executortest.Order){
		"a file beside the script": func(o *executortest.Order) {
			o.Files = append(o.Files, bundle.File{Path: "lib.sh", Data: []byte("x=1\n")})
		},
		"words":       func(o *executortest.Order) { o.Mode, o.Arguments = gate.Argv, []string{"x"} },
		"inputs":      func(o *executortest.Order) { o.Inputs = []bundle.File{{Path: "a.txt", Data: []byte("x")}} },
		"outputs":     func(o *executortest.Order) { o.Outputs = []string{"*.txt"} },
		"environment": func(o *executortest.Order) { o.Policy.Environment = map[string]string{"A_B": "c"} },
		"network":     func(o *executortest.Order) { o.Policy.Network = gate.Loopback },
		"M09: a wall": func(o *executortest.Order) { o.Policy.RequireWalls = []string{"memory"} },
	}
	for name, change := range tests {
		f := newFake(t, "", status(200, "{}"))
		_, err := open(t, f.URL, nil).Execute(t.Context(), admit(t, change))
		t.Run(name, func(t *testing.T) { check(t, err, remote.Unsendable, false) })
		if n := f.runs.Load(); n != 0 {
			t.Errorf("%s: the runner was asked %d times", name, n)
		}
	}
	// A path of this host is nothing that another one could start.
	f := newFake(t, "", status(200, "{}"))
	w := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Path: absolute}})
	req, err := w.Admit(t.Context(), executortest.Order{Files: []bundle.File{{Path: "main.sh", Data: []byte("x")}}, Script: "main.sh", Mode: gate.None})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []string{"", knows} {
		_, err = open(t, newFake(t, info, status(200, "{}")).URL, nil).Execute(t.Context(), req)
		check(t, err, remote.Unsendable, false)
	}
	if f.runs.Load() != 0 {
		t.Error("the runner was asked")
	}
}

// The key is read for each request, and one that cannot be read sends nothing.
func TestKey(t *testing.T) {
	f := newFake(t, knows, answering(t, nil))
	for name, key := range map[string]string{"none": "", "a line": "a\nb", "a blank": "a b", "too long": strings.Repeat("x", 5000)} {
		_, err := open(t, f.URL, func(c *remote.Config) { c.Key = func() (string, error) { return key, nil } }).Execute(t.Context(), admit(t, nil))
		t.Run(name, func(t *testing.T) { check(t, err, remote.Unsendable, false) })
		if err != nil && key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the key is in %q", name, err)
		}
	}
	if f.runs.Load() != 0 {
		t.Error("the runner was asked")
	}
}

// A closure that is too large to travel within is sent once for all runs, and again
// when the runner says that it has lost it.
func TestUpload(t *testing.T) {
	var heads, puts atomic.Int64
	var has, lose atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, knows) })
	mux.HandleFunc("HEAD /bundles/{digest}", func(w http.ResponseWriter, _ *http.Request) {
		heads.Add(1)
		if !has.Load() {
			w.WriteHeader(404)
		}
	})
	mux.HandleFunc("PUT /bundles/{digest}", func(w http.ResponseWriter, r *http.Request) {
		puts.Add(1)
		c, err := wire.ReadClosure(r.Body, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if b, err := c.Bundle(bundle.Limits{}); err != nil || b.Digest().String() != r.PathValue("digest") {
			t.Errorf("the closure has another digest, or %v", err)
		}
		has.Store(true)
		w.WriteHeader(204)
	})
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		if lose.Swap(false) {
			has.Store(false)
			status(409, `{"status":409,"code":"bundle_unknown","detail":"x","notStarted":true}`)(w, r)
			return
		}
		b, _ := io.ReadAll(r.Body)
		if bytes.Contains(b, []byte(`"files"`)) {
			t.Error("the files travel within the run too")
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		_, _ = w.Write(good(t, r, nil))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	e := open(t, s.URL, nil)
	req := admit(t, func(o *executortest.Order) {
		o.Files = append(o.Files, bundle.File{Path: "big.bin", Data: make([]byte, 100<<10)})
	})
	errs := make(chan error)
	for range 8 {
		go func() { _, err := e.Execute(t.Context(), req); errs <- err }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if heads.Load() != 1 || puts.Load() != 1 {
		t.Errorf("8 runs: asked %d times, sent %d times; want once each", heads.Load(), puts.Load())
	}
	lose.Store(true)
	if _, err := e.Execute(t.Context(), req); err != nil || puts.Load() != 2 {
		t.Errorf("after it was lost: %v, sent %d times", err, puts.Load())
	}
}
