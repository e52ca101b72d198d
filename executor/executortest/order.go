package executortest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// patience is how much later than it should an executor may answer: it waits for
// slow machines, and is far below the five minutes for which programs sleep.
const patience = time.Minute

// enough is the timeout of programs that end by themselves.
const enough = 2 * time.Minute

// program returns the order of a program of the dialect, called without
// arguments and with enough time.
func (k *trial) program(p Program) Order {
	k.Helper()
	s, ok := k.dialect.Programs[p]
	if !ok {
		k.Fatalf("executortest: dialect %s has no program %q", k.dialect.Name, p)
	}
	return k.text(s.Text, s.Files)
}

func (k *trial) text(text string, files map[string]string) Order {
	o := Order{Script: "scripts/main." + k.dialect.Extension, Mode: gate.Argv, Policy: gate.Policy{Timeout: enough}}
	o.Files = []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: o.Script, Data: []byte(text)}}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		o.Files = append(o.Files, bundle.File{Path: p, Data: []byte(files[p])})
	}
	return o
}

// admit takes the order through the gates.
func (k *trial) admit(o Order) executor.Request {
	k.Helper()
	req, err := k.world.Admit(k.Context(), o)
	if err != nil {
		k.Errorf("executortest: the gates refused %s: %v", k.one.name, err)
	}
	return req
}

// run runs the order, which must not fail (the zero Result where it did), and holds what holds for every run.
func (k *trial) run(o Order) executor.Result {
	k.Helper()
	req := k.admit(o)
	res, err := k.executor.Execute(k.Context(), req)
	if err != nil {
		k.bad("got error %v", err)
		return executor.Result{}
	}
	if res.Ending.IsZero() {
		k.bad("got no ending")
	}
	if most := req.MaxOutputBytes(); len(res.Stdout) > most || len(res.Stderr) > most {
		k.bad("R19: at most %d bytes of each stream are kept: got %d and %d", most, len(res.Stdout), len(res.Stderr))
	}
	return res
}

// exits runs the order, which must exit with the code and print want.
func (k *trial) exits(o Order, code int, want string) executor.Result {
	k.Helper()
	res := k.run(o)
	if res.Ending != executor.Exited(code) {
		k.bad("got %v, want exit code %d; standard error: %.500q", res.Ending, code, res.Stderr)
	}
	if string(res.Stdout) != want {
		k.bad("got output %.500q, want %.500q", res.Stdout, want)
	}
	return res
}

// within runs f and holds that it answers in about d, beside the time that a script
// takes to begin.
func (k *trial) within(d time.Duration, f func()) {
	k.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > d+patience+k.setup.Start {
		k.bad("it answered after %v, and should have after about %v", took.Round(time.Millisecond), d)
	}
}

// expires runs the order with a timeout of a second.
func (k *trial) expires(o Order) executor.Result {
	k.Helper()
	return k.expiresAfter(o, time.Second)
}

// expiresLoudly is expires for a program that prints something at its start. On a
// machine that is so busy that it came to nothing, it gets more time.
func (k *trial) expiresLoudly(o Order) (res executor.Result) {
	k.Helper()
	for _, timeout := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		if res = k.expiresAfter(o, timeout); len(res.Stdout) > 0 {
			break
		}
	}
	return res
}

func (k *trial) expiresAfter(o Order, timeout time.Duration) executor.Result {
	k.Helper()
	o.Policy.Timeout = timeout
	var res executor.Result
	begin := time.Now()
	k.within(timeout, func() { res = k.run(o) })
	if took := time.Since(begin); took < timeout {
		k.bad("it answered after %v, before the timeout", took)
	}
	if res.Ending != executor.Expired() {
		k.bad("got %v, want timed out", res.Ending)
	}
	if code, ok := res.Ending.ExitCode(); ok {
		k.bad("a run that timed out has exit code %d", code)
	}
	return res
}

// cancelled runs the order, cancels it once it has printed something, and
// returns the error.
func (k *trial) cancelled(o Order, cause error) error {
	k.Helper()
	ctx, cancel := context.WithCancelCause(k.Context())
	defer cancel(nil)
	if k.setup.Lacks.Live {
		time.AfterFunc(time.Second, func() { cancel(cause) })
	} else {
		o.Live = gate.NewLive(0)
		go func() {
			<-o.Live.Chunks()
			cancel(cause)
		}()
	}
	defer o.Live.Close()
	req := k.admit(o)
	var err error
	k.within(time.Second, func() { _, err = k.executor.Execute(ctx, req) })
	return err
}
