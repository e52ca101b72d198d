package runnerapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/wire"
)

// small is a run with the member "tracon", whose closure is within it.
func small(t testing.TB, most int) wire.Run {
	t.Helper()
	b, err := bundle.New([]bundle.File{{Path: "a.py", Data: []byte(source)}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Run{Tenant: "acme", Runtime: "python-3.12", SourceSHA256: sum(source), TimeoutSeconds: 600, MaxOutputBytes: most, More: &wire.More{
		ID: "019e9d3c-0000-7000-8000-000000000002", Skill: "s", Script: "a.py", Mode: "argv", Bundle: b.Digest().String(), Files: wire.FilesOf(b.Files())}}
}

const truth = "the truth"

// prints is an executor of a script that writes what f sends.
func prints(f func(live *gate.Live)) executor.Func {
	return func(_ context.Context, req executor.Request) (executor.Result, error) {
		f(req.Live())
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte(truth)}, nil
	}
}

// M02, R19: what is shown of a run comes in order, in pieces that are neither too large
// nor too many, no more than the run asked for, and tells what of it was lost; the script
// waits for nobody, and nothing comes behind the answer.
func TestShown(t *testing.T) {
	peer := gate.Peer{Name: "one", Tenants: []string{"acme"}}
	for _, tt := range []struct {
		name           string
		most           int
		script         func(*gate.Live)
		slow           bool // whoever is shown it takes nothing until the script has ended
		stdout, stderr string
		all            int64 // bytes, shown or lost
		pieces         int   // at most
	}{
		{"both streams", 100, func(l *gate.Live) {
			l.Send(gate.Stderr, []byte("a\xff"))
			l.Send(gate.Stdout, []byte("b"))
			l.Send(gate.Stdout, []byte("c"))
		}, false, "bc", "a\xff", 4, 3},
		{"nothing", 100, func(*gate.Live) {}, false, "", "", 0, 0},
		{"more than was asked for", 3, func(l *gate.Live) { l.Send(gate.Stdout, []byte("abcdef")); l.Send(gate.Stderr, []byte("xy")) }, false, "abc", "xy", 8, 3},
		{"a large piece", 1 << 20, func(l *gate.Live) { l.Send(gate.Stdout, bytes.Repeat([]byte("x"), 100<<10)) }, false, strings.Repeat("x", 100<<10), "", 100 << 10, 2},
		// By the pace there are 2*sqrt(3600 s/100 µs) pieces of both streams in an hour, and
		// 58,788 in a day, which is below wire.MaxPieces.
		{"for an hour, byte by byte", 1 << 20, func(l *gate.Live) {
			for range 12_000 {
				l.Send(gate.Stdout, []byte("x"))
				l.Send(gate.Stderr, []byte("y"))
				time.Sleep(time.Hour / 12_000)
			}
		}, false, strings.Repeat("x", 12_000), strings.Repeat("y", 12_000), 24_000, 12_010},
		{"faster than it is taken", 1 << 20, func(l *gate.Live) {
			for range 2_000 {
				l.Send(gate.Stdout, []byte("x"))
			}
		}, true, "", "", 2_000, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				s := newCore(t, prints(func(l *gate.Live) { tt.script(l); close(ended) }), func(_ *runnerapi.Config, _ *tracon.Config, r *gate.Reception) { r.Timeout = wire.MaxTimeout })
				run := small(t, tt.most)
				run.TimeoutSeconds = wire.MaxTimeout.Seconds()
				var got []wire.Output
				over := false
				a, err := s.Run(t.Context(), peer, run, bundle.Bundle{}, func(o wire.Output) {
					if over {
						t.Error("something is shown behind the answer")
					}
					if tt.slow {
						<-ended
					}
					got = append(got, o)
				})
				over = true
				if err != nil || a.StandardOutput != truth[:min(len(truth), tt.most)] {
					t.Fatalf("got %q, %v", a.StandardOutput, err)
				}
				texts, at := map[string]string{}, int64(0)
				for _, o := range got {
					if err := o.Check(); err != nil || o.ID != run.More.ID || o.Offset < at {
						t.Fatalf("M01: a piece of %.40q at %d, behind %d: %v", o.ID, o.Offset, at, err)
					}
					at = o.Offset + int64(len(o.Data))
					texts[o.Stream] += string(o.Data)
				}
				if at != tt.all || len(got) > tt.pieces || !tt.slow && (texts[wire.Stdout] != tt.stdout || texts[wire.Stderr] != tt.stderr) {
					t.Errorf("got %d pieces, %d and %d bytes, up to %d; want at most %d, %d, %d, %d", len(got), len(texts[wire.Stdout]), len(texts[wire.Stderr]), at,
						tt.pieces, len(tt.stdout), len(tt.stderr), tt.all)
				}
				if tt.slow && len(texts[wire.Stdout]) >= 2_000 {
					t.Error("nothing was lost: the script waited")
				}
			})
		})
	}
}

// ask posts the run, and returns the answer whose body is to be closed.
func (s *service) ask(t *testing.T, ctx context.Context, body string, accept ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.http.URL+"/runs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer one")
	req.Header["Accept"] = accept
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func encoded(t testing.TB, run wire.Run) string {
	t.Helper()
	b, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The output comes while the script runs, and the answer behind it is whole; a runner that
// drains meanwhile goes on with it.
func TestLive(t *testing.T) {
	let := make(chan struct{})
	s := newService(t, prints(func(l *gate.Live) {
		l.Send(gate.Stdout, []byte("so far"))
		<-let
	}), nil)
	res := s.ask(t, t.Context(), encoded(t, small(t, 1000)), "text/html, "+wire.LiveType+";q=0.5", "*/*")
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != wire.LiveType {
		t.Fatalf("got status %d, %q", res.StatusCode, got)
	}
	frames := wire.NewFrames(res.Body, 0)
	f, err := frames.Next()
	if err != nil || f.Output == nil || string(f.Output.Data) != "so far" || f.Output.Stream != wire.Stdout {
		t.Fatalf("got %+v, %v", f, err)
	}
	s.Drain()
	close(let)
	f, err = frames.Next()
	if err != nil || f.Answer == nil || f.Answer.StandardOutput != truth || f.Answer.More == nil {
		t.Fatalf("got %+v, %v", f, err)
	}
	if _, err := frames.Next(); err != io.EOF {
		t.Errorf("behind the answer: %v", err)
	}
}

// R28, R30: whoever does not ask for it, by the member or in Accept, has the plain answer,
// and so has a run that writes nothing; what fails says so in its place, and never that
// nothing was started when output was shown (M06).
func TestLiveOrNot(t *testing.T) {
	says := prints(func(l *gate.Live) { l.Send(gate.Stdout, []byte("x")) })
	fails := func(err error) executor.Func {
		return func(_ context.Context, req executor.Request) (executor.Result, error) {
			req.Live().Send(gate.Stdout, []byte("x"))
			return executor.Result{}, err
		}
	}
	other := small(t, 1000)
	other.Runtime = "cobol-85"
	for _, tt := range []struct {
		name         string
		exec         executor.Func
		body, accept string
		status       int
		kind, has    string
	}{
		{"nobody asks", says, encoded(t, small(t, 1000)), "application/json", 200, "application/json", `"standardOutput":"the truth"`},
		{"anything", says, encoded(t, small(t, 1000)), "*/*", 200, "application/json", `"standardOutput":"the truth"`},
		{"not at all", says, encoded(t, small(t, 1000)), wire.LiveType + ";q=0", 200, "application/json", `"standardOutput":"the truth"`},
		{"the plain wire", says, plain("acme"), wire.LiveType, 200, "application/json", `"standardOutput":"the truth"`},
		{"nothing to show", echo, encoded(t, small(t, 1000)), wire.LiveType, 200, "application/json", `"standardError":"err"`},
		{"a refusal", says, encoded(t, other), wire.LiveType, 422, "application/problem+json", `"notStarted":true`},
		{"it fails", fails(errors.New("secret-path")), encoded(t, small(t, 1000)), wire.LiveType, 200, wire.LiveType, `{"problem":{"status":500,"code":"executor_failed"`},
		{"M06: it says that it did not start", fails(executor.ErrUnavailable), encoded(t, small(t, 1000)), wire.LiveType, 200, wire.LiveType, `{"problem":{"status":503,"code":"executor_unavailable"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, tt.exec, nil)
			res := s.ask(t, t.Context(), tt.body, tt.accept)
			text, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tt.status || res.Header.Get("Content-Type") != tt.kind || !strings.Contains(string(text), tt.has) {
				t.Errorf("got %d, %q, %s, %v; want %d, %q, %s", res.StatusCode, res.Header.Get("Content-Type"), text, err, tt.status, tt.kind, tt.has)
			}
			if tt.kind == wire.LiveType && strings.Contains(string(text), "notStarted") || strings.Contains(string(text), "secret-path") {
				t.Errorf("M06, R26: got %s", text)
			}
		})
	}
}

// B10: whoever asks to be shown a run and takes nothing holds neither the run nor its
// slot; what it was too slow for is told as lost, and the answer is whole.
func TestLiveTakesNothing(t *testing.T) {
	const piece, pieces = 32 << 10, 64 // more than what the connection holds
	s := newCore(t, prints(func(l *gate.Live) {
		for range pieces {
			l.Send(gate.Stdout, make([]byte, piece))
		}
	}), func(_ *runnerapi.Config, _ *tracon.Config, r *gate.Reception) { r.MaxOutput = piece * pieces })
	s.http = httptest.NewUnstartedServer(s.Handler())
	s.http.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		return ctx
	}
	s.http.Start()
	t.Cleanup(s.http.Close)
	res := s.ask(t, t.Context(), encoded(t, small(t, piece*pieces)), wire.LiveType)
	for s.runner.Stats().InUse > 0 {
		runtime.Gosched()
	}
	frames := wire.NewFrames(res.Body, 0)
	var told int64
	for {
		f, err := frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Output != nil {
			told = f.Output.Offset + int64(len(f.Output.Data))
			continue
		}
		if f.Answer == nil || f.Answer.StandardOutput != truth {
			t.Errorf("got %+v", f)
		}
		break
	}
	if told != piece*pieces {
		t.Errorf("%d bytes are shown or lost, want %d", told, piece*pieces)
	}
}

// R24: a caller who hangs up while it is shown the output has its run stopped.
func TestLiveHangUp(t *testing.T) {
	ended := make(chan error, 1)
	s := newService(t, func(ctx context.Context, req executor.Request) (executor.Result, error) {
		req.Live().Send(gate.Stdout, []byte("x"))
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return executor.Result{}, context.Cause(ctx)
	}, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	res := s.ask(t, ctx, encoded(t, small(t, 1000)), wire.LiveType)
	if _, err := wire.NewFrames(res.Body, 0).Next(); err != nil {
		t.Fatal(err)
	}
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the run goes on")
	}
}

// R21, M06: a run of which something was shown is not let in again, even if its executor
// says that it did not start; one of which nothing was shown is.
func TestShownIsStarted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shows bool
		want  error
	}{
		{"something was shown", true, runnerapi.ErrRepeated},
		{"nothing was shown", false, executor.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, func(_ context.Context, req executor.Request) (executor.Result, error) {
				if tt.shows {
					req.Live().Send(gate.Stdout, []byte("x"))
				}
				return executor.Result{}, executor.ErrUnavailable
			}, nil)
			run, b := closure(t, bundle.File{Path: "scripts/run.py", Data: []byte("pass\n")})
			run.More.Files, run.More.Declaration = wire.FilesOf(b.Files()), b.Declaration()
			peer := gate.Peer{Name: "one", Tenants: []string{"acme"}}
			var err error
			for range 2 {
				_, err = s.Run(t.Context(), peer, run, bundle.Bundle{}, func(wire.Output) {})
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("sent again: %v, want %v", err, tt.want)
			}
		})
	}
}
