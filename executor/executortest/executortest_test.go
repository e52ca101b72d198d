package executortest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// A report is a [Tester] of a command's kind: it needs no package testing.
type report struct {
	ctx  context.Context
	name string

	mu       *sync.Mutex
	failures *[]string
	ran      *int
	cleanups []func()
}

func newReport(ctx context.Context) *report {
	return &report{ctx: ctx, mu: &sync.Mutex{}, failures: &[]string{}, ran: new(int)}
}

func (r *report) Helper()                  {}
func (r *report) Context() context.Context { return r.ctx }
func (r *report) Logf(string, ...any)      {}
func (r *report) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *report) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *report) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.failures = append(*r.failures, r.name+": "+fmt.Sprintf(format, args...))
}

func (r *report) Run(name string, f func(*report)) bool {
	sub := &report{ctx: r.ctx, name: r.name + "/" + name, mu: r.mu, failures: r.failures, ran: r.ran}
	r.mu.Lock()
	*r.ran++
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(sub.cleanups) {
				c()
			}
		}()
		f(sub)
	}()
	<-done
	return true
}

var (
	_ Tester[*report]    = (*report)(nil)
	_ Tester[*testing.T] = (*testing.T)(nil)
)

// An actor is an executor of the dialect "mime", whose scripts name the result
// that they have: it acts every program as a good executor would, so that each
// bad one below differs from it in one thing alone.
type actor struct{}

const mimeExtension = "mime"

func mime() Dialect {
	d := Dialect{Name: "mime", Extension: mimeExtension, Programs: map[Program]Script{}}
	for _, p := range []Program{Words, Exit, Both, Echo, Progress, Deaf, Much, Bytes, Kill, Many} {
		d.Programs[p] = Script{Text: string(p)}
	}
	return d
}

func (actor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	if ctx.Err() != nil {
		return executor.Result{}, context.Cause(ctx)
	}
	res := executor.Result{Ending: executor.Exited(0)}
	stdout := executor.NewCapture(req.MaxOutputBytes(), func(p []byte) { req.Live().Send(gate.Stdout, p) }, nil)
	stderr := executor.NewCapture(req.MaxOutputBytes(), func(p []byte) { req.Live().Send(gate.Stderr, p) }, nil)
	text := string(req.Content())
	program := Program(text[strings.LastIndex(text, "\n")+1:])
	switch words := req.Words(); program {
	case Words:
		for _, w := range words {
			fmt.Fprintf(stdout, "%s\x00", w)
		}
	case Exit:
		code := 7
		if len(words) > 0 {
			_, _ = fmt.Sscan(words[0], &code)
		}
		res.Ending = executor.Exited(code)
	case Both:
		fmt.Fprint(stdout, "out\n")
		fmt.Fprint(stderr, "warning\n")
	case Echo:
		_, _ = stdout.Write(req.Stdin())
	case Much:
		n := 0
		_, _ = fmt.Sscan(words[0], &n)
		_, _ = stdout.Write(slices.Repeat([]byte("a"), n))
	case Bytes:
		fmt.Fprint(stdout, strange)
	case Kill:
		res.Ending = executor.Signaled(9)
	case Many:
		size, count := req.MaxOutputs()
		for i := range 5 {
			if !gate.MatchOutput(req.OutputPatterns(), fmt.Sprint(i)) {
				res.Notes = append(res.Notes, fmt.Sprintf("outputs/%d matches no pattern", i))
				continue
			}
			if size < 10 || count < 1 {
				res.Notes = append(res.Notes, fmt.Sprintf("outputs/%d was not collected", i))
				continue
			}
			res.Outputs = append(res.Outputs, bundle.File{Path: fmt.Sprint(i), Data: []byte("0123456789")})
			size, count = size-10, count-1
		}
	case Progress, Deaf:
		fmt.Fprintf(stdout, "%s\n", program)
		timer := time.NewTimer(req.Timeout())
		defer timer.Stop()
		select {
		case <-timer.C:
			res.Ending = executor.Expired()
		case <-ctx.Done():
			return executor.Result{}, context.Cause(ctx)
		}
	}
	var cutOut, cutErr bool
	res.Stdout, cutOut = stdout.Bytes()
	res.Stderr, cutErr = stderr.Bytes()
	res.Truncated = cutOut || cutErr
	return res, nil
}

func suite(t *testing.T, ex executor.Executor) []string {
	t.Helper()
	var r *report
	synctest.Test(t, func(t *testing.T) { // an actor's timeouts take no time
		r = newReport(t.Context())
		Run(r, Setup{
			New:          func(T) executor.Executor { return ex },
			Interpreters: map[string]gate.Interpreter{mimeExtension: {Name: "mime"}},
			Dialects:     []Dialect{mime()},
		})
	})
	if *r.ran < 15 {
		t.Fatalf("only %d cases ran", *r.ran)
	}
	return *r.failures
}

// A good executor passes, in a tester of another kind than *testing.T.
func TestGoodExecutorPasses(t *testing.T) {
	if failures := suite(t, actor{}); len(failures) > 0 {
		t.Errorf("a good executor failed:\n%s", strings.Join(failures, "\n"))
	}
}

// Each fault of an executor turns the suite red, and the failure tells the rule.
func TestBadExecutorsFail(t *testing.T) {
	after := func(change func(executor.Request, *executor.Result)) executor.Executor {
		return executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			res, err := actor{}.Execute(ctx, req)
			if err == nil {
				change(req, &res)
			}
			return res, err
		})
	}
	for _, tc := range []struct {
		name string
		ex   executor.Executor
		want string // in a failure
	}{
		{"takes the zero request", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			if !req.Valid() {
				return executor.Result{Ending: executor.Exited(0)}, nil
			}
			return actor{}.Execute(ctx, req)
		}), "R18"},
		{"reports a cancellation as a timeout", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			res, err := actor{}.Execute(ctx, req)
			if errors.Is(err, errGaveUp) || errors.Is(err, context.DeadlineExceeded) {
				return executor.Result{Ending: executor.Expired()}, nil
			}
			return res, err
		}), "R24"},
		{"returns ctx.Err instead of the cause", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			res, err := actor{}.Execute(ctx, req)
			if errors.Is(err, errGaveUp) {
				return res, context.Canceled
			}
			return res, err
		}), "R24"},
		{"reports a timeout as an exit", after(func(_ executor.Request, res *executor.Result) {
			if res.Ending.TimedOut() {
				res.Ending = executor.Exited(137)
			}
		}), "R23"},
		{"stops too early", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			if req.Valid() && string(req.Content()) == string(Progress) {
				return executor.Result{Ending: executor.Expired(), Stdout: []byte("progress\n")}, nil
			}
			return actor{}.Execute(ctx, req)
		}), "R23"},
		{"takes an exit code for an error", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			res, err := actor{}.Execute(ctx, req)
			if code, _ := res.Ending.ExitCode(); code != 0 {
				return executor.Result{}, errors.New("exit status 3")
			}
			return res, err
		}), "R27"},
		{"takes standard error for a failure", after(func(_ executor.Request, res *executor.Result) {
			if len(res.Stderr) > 0 {
				res.Ending = executor.Exited(1)
			}
		}), "case 29"},
		{"says no ending", after(func(_ executor.Request, res *executor.Result) { res.Ending = executor.Ending{} }), "no ending"},
		{"keeps too much", after(func(_ executor.Request, res *executor.Result) {
			if res.Truncated {
				res.Stdout = append(res.Stdout, "more"...)
			}
		}), "R19"},
		{"does not tell a cut", after(func(_ executor.Request, res *executor.Result) { res.Truncated = false }), "R19"},
		{"loses the empty argument", after(func(_ executor.Request, res *executor.Result) {
			res.Stdout = []byte(strings.ReplaceAll(string(res.Stdout), "\x00\x00", "\x00"))
		}), "case 9"},
		{"mends the output", after(func(_ executor.Request, res *executor.Result) {
			res.Stdout = []byte(strings.ToValidUTF8(string(res.Stdout), "?"))
		}), "case 28"},
		{"mixes the streams", after(func(_ executor.Request, res *executor.Result) {
			res.Stdout, res.Stderr = append(res.Stdout, res.Stderr...), nil
		}), "case 29"},
		{"hides a signal", after(func(_ executor.Request, res *executor.Result) {
			if _, ok := res.Ending.Signal(); ok {
				res.Ending = executor.Exited(137)
			}
		}), "case 30"},
		{"returns too many files", after(func(_ executor.Request, res *executor.Result) {
			if len(res.Outputs) > 0 {
				res.Outputs = append(res.Outputs, bundle.File{Path: "more"})
			}
		}), "B5"},
		{"takes no notice of patterns", executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			res, err := actor{}.Execute(ctx, req)
			if err == nil && len(req.OutputPatterns()) > 0 {
				res.Outputs[0].Path = "0"
			}
			return res, err
		}), "match a declared pattern"},
		{"names no file that was left", after(func(_ executor.Request, res *executor.Result) { res.Notes = nil }), "B5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			failures := suite(t, tc.ex)
			if !slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, tc.want) }) {
				t.Errorf("no failure tells of %q: %q", tc.want, failures)
			}
		})
	}
}

// What a run leaves is found, whatever the executor says.
func TestLeftoversFail(t *testing.T) {
	var r *report
	synctest.Test(t, func(t *testing.T) {
		r = newReport(t.Context())
		Run(r, Setup{
			New:          func(T) executor.Executor { return actor{} },
			Interpreters: map[string]gate.Interpreter{mimeExtension: {Name: "mime"}},
			Dialects:     []Dialect{mime()},
			Leftovers:    func() []string { return []string{"process 4711"} },
		})
	})
	if !slices.ContainsFunc(*r.failures, func(f string) bool { return strings.Contains(f, "B3") && strings.Contains(f, "process 4711") }) {
		t.Errorf("got %q", *r.failures)
	}
}

// A Setup that proves nothing fails.
func TestEmptySetupFails(t *testing.T) {
	for name, s := range map[string]Setup{
		"zero":           {},
		"no dialect":     {New: func(T) executor.Executor { return actor{} }, Interpreters: map[string]gate.Interpreter{"cobol": {Name: "cobol"}}},
		"no interpreter": {New: func(T) executor.Executor { return actor{} }},
	} {
		r := newReport(t.Context())
		r.Run(name, func(r *report) { Run(r, s) })
		if len(*r.failures) == 0 {
			t.Errorf("%s: it passed", name)
		}
	}
}

// Each of our dialects has every program, except where it says so here.
func TestDialectsAreWhole(t *testing.T) {
	lacks := map[string][]Program{
		"sh":     {Missing, Module, Relative},                // a shell has no packages
		"python": {CarriageReturns},                          // both take CR LF for the end of a line
		"node":   {Storm, Module, Relative, CarriageReturns}, // node cannot fork, and its spawn is too slow for a storm
	}
	for _, d := range Dialects() {
		for _, c := range slices.Concat(cases, waitingCases) {
			if _, ok := d.Programs[c.program]; !ok && c.program != "" && !slices.Contains(lacks[d.Name], c.program) {
				t.Errorf("dialect %s lacks program %q", d.Name, c.program)
			}
		}
	}
}
