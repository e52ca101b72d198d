package executortest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tracon-go/tracon/gate"
)

// waitingCases spend their time waiting for a timeout, so they run at once.
var waitingCases = []testCase{
	{"timeout", "R23, case 22: at the timeout the script is stopped, the run has timed out, and what was printed is there", Progress, nil, func(k *trial) {
		if res := k.expiresLoudly(k.program(Progress)); string(res.Stdout) != "progress\n" {
			k.bad("got output %q, want what was printed before", res.Stdout)
		}
	}},
	{"deaf to signals", "case 20: a script that ignores SIGTERM is stopped at its timeout", Deaf, nil, func(k *trial) {
		if res := k.expiresLoudly(k.program(Deaf)); string(res.Stdout) != "deaf\n" {
			k.bad("got output %q", res.Stdout)
		}
	}},
	{"drip", "case 27: a script that writes for ever, and slowly, times out", Drip, nil, func(k *trial) {
		if res := k.expiresLoudly(k.program(Drip)); strings.Trim(string(res.Stdout), ".") != "" || len(res.Stdout) == 0 {
			k.bad("got output %q", res.Stdout)
		}
	}},
	{"deadline of the caller", "R24: a deadline of the caller before the timeout is a cancellation", Progress, nil, func(k *trial) {
		req := k.admit(k.program(Progress))
		ctx, cancel := context.WithTimeout(k.Context(), 300*time.Millisecond)
		defer cancel()
		k.within(300*time.Millisecond, func() {
			if res, err := k.executor.Execute(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
				k.bad("got %v, %v", res.Ending, err)
			}
		})
	}},
	{"large standard input, never read", "case 23: a script that never reads its input times out as any other", Progress, nil, func(k *trial) {
		o := k.program(Progress)
		o.Policy.MaxArguments = 2 << 20
		o.Mode, o.Arguments = gate.Stdin, map[string]any{"x": strings.Repeat("x", 1<<20)}
		k.expires(o)
	}},
}
