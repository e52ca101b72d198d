package executortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"

	"github.com/tracon-go/tracon/executor"
)

var errGaveUp = errors.New("executortest: the caller gave up")

var endingCases = []testCase{
	{"exit code", "case 30, R27: a non-zero exit is a normal outcome", Exit, nil, func(k *trial) {
		for _, code := range []string{"0", "3", "124", "255"} {
			o := k.program(Exit)
			o.Arguments = []string{code}
			var n int
			_, _ = fmt.Sscan(code, &n)
			k.exits(o, n, "")
		}
	}},
	{"signal", "case 30: a script that SIGKILL ends has signal 9 and no exit code", Kill, func(l Lacks) bool { return l.Signals }, func(k *trial) {
		if res := k.run(k.program(Kill)); res.Ending != executor.Signaled(int(syscall.SIGKILL)) {
			k.bad("got %v", res.Ending)
		}
	}},
	{"crash", "case 30: a script that crashes has the signal, and leaves no core file", Crash, func(l Lacks) bool { return l.Signals }, func(k *trial) {
		if res := k.run(k.program(Crash)); res.Ending != executor.Signaled(int(syscall.SIGSEGV)) {
			k.bad("got %v; standard error: %q", res.Ending, res.Stderr)
		}
	}},
	{"cancel", "R24: the caller's cancellation stops the script and is its own error, never a timeout", Deaf, nil, func(k *trial) {
		if err := k.cancelled(k.program(Deaf), errGaveUp); !errors.Is(err, errGaveUp) {
			k.bad("got error %v, want the cause of the context", err)
		}
	}},
	{"cancelled before", "R24: a call that was cancelled before it starts does not start", Progress, nil, func(k *trial) {
		req := k.admit(k.program(Progress))
		ctx, cancel := context.WithCancelCause(k.Context())
		cancel(errGaveUp)
		k.within(0, func() {
			if res, err := k.executor.Execute(ctx, req); !errors.Is(err, errGaveUp) {
				k.bad("got %v, %v", res.Ending, err)
			}
		})
	}},
	{"child", "cases 18 and 25: a child in the background does not hold the run, even with its output open, and is gone", Child, nil, func(k *trial) {
		k.within(0, func() { k.stopped(k.exits(k.program(Child), 0, "hi\n")) })
	}},
	{"orphan", "case 19: a process that left its session is gone too", Orphan, func(l Lacks) bool { return l.Escapees }, func(k *trial) {
		k.within(0, func() { k.stopped(k.exits(k.program(Orphan), 0, "hi\n")) })
	}},
	{"storm", "case 21: processes that keep forking are all stopped at the timeout, and the host can still fork", Storm, nil, func(k *trial) {
		o := k.program(Storm)
		o.Policy.Processes = 128
		k.expires(o)
		k.exits(k.program(Both), 0, "out\n")
	}},
	{"memory", "case 31: a script that takes too much memory is out of memory, told apart from a crash", Hunger, func(l Lacks) bool { return l.Memory }, func(k *trial) {
		o := k.program(Hunger)
		o.Policy.Memory = 128 << 20
		if res := k.run(o); res.Ending != executor.OutOfMemory() {
			k.bad("got %v; standard error: %.500q", res.Ending, res.Stderr)
		}
	}},
	{"concurrent", "R6, R20: one instance serves many runs at once, each with its own tenant, arguments and files", Environment, nil, func(k *trial) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				o := k.program(Environment)
				o.Tenant = fmt.Sprintf("concurrent-%s-%d", k.dialect.Name, i)
				o.Policy.Environment = map[string]string{"TENANT": o.Tenant}
				if out := string(k.run(o).Stdout); !strings.Contains(out, "TENANT="+o.Tenant+"\n") {
					k.bad("the run of %s sees %q", o.Tenant, out)
				}
			})
		}
		wg.Wait()
	}},
	{"fresh scripts", "case 34: a hundred freshly written scripts, eight at a time: no \"text file busy\", not once", Direct, func(l Lacks) bool { return l.Files }, func(k *trial) {
		turn := make(chan struct{}, 8)
		var wg sync.WaitGroup
		for range 100 {
			turn <- struct{}{}
			wg.Go(func() {
				defer func() { <-turn }()
				k.exits(k.program(Direct), 0, "hello\n")
			})
		}
		wg.Wait()
	}},
}

// stopped holds that the result tells of a process that had to be stopped.
func (k *trial) stopped(res executor.Result) {
	k.Helper()
	if !k.setup.Lacks.Notes && !strings.Contains(strings.Join(res.Notes, "\n"), "still running") {
		k.bad("no note says that a process had to be stopped: %q", res.Notes)
	}
}
