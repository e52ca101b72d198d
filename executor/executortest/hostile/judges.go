//go:build linux

package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// patience is how much later than it should an executor may answer: far more than
// a busy machine needs, and less than the time for which scripts leave something
// behind, which is 200 s.
const patience = time.Minute

// soon is when a control is overdue: one that waits for what a script left would
// wait for as long as that is there.
const soon = 500 * time.Millisecond

// maxRaces is how many runs a race has at most.
const maxRaces = 2000

// surelyWon is how long a race is run that must be won, by chance, in one of a few
// runs. A busy machine needs long for each.
const surelyWon = 3 * time.Minute

// ofThisBoot holds that the script learned nothing by which the kernel's start is
// known; of a kernel of its own it may, which is not the host's.
func ofThisBoot(k *trial, s said) bool {
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return s.outcome == "ok" && (!k.setup.OwnKernel || err != nil || strings.TrimSpace(s.detail) == strings.TrimSpace(string(host)))
}

// strangeNames holds that no output has a name that means something elsewhere.
func strangeNames(_ *trial, f *findings) {
	for _, o := range f.result.Outputs {
		if err := bundle.CheckPath(o.Path); err != nil {
			f.through["names"] = err.Error()
		}
	}
	for _, n := range f.result.Notes {
		if strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e || r == 0xfffd }) {
			f.through["names"] = fmt.Sprintf("a note holds a control character: %q", n)
		}
	}
}

// race repeats a run whose script leaves a process that swaps outputs/d, a
// folder, and outputs/e, a link. The race was won as often as both were seen
// where they had not been at the start, and as they had been.
func race(k *trial, ex executor.Executor) *findings {
	k.Helper()
	var last *findings
	swapped, plain := 0, 0
	begin := time.Now()
	more := func(n int) bool {
		if k.Context().Err() != nil {
			return false
		}
		if took := time.Since(begin); k.mustWin || swapped == 0 || plain == 0 {
			return took < surelyWon
		} else {
			return n < maxRaces && took < k.setup.Races
		}
	}
	for n := 0; more(n); n++ {
		last = k.once(ex)
		// Where the wall is missing, what the run left gets through each time.
		if len(last.faults) > 0 || !k.mustWin && len(last.through) > 0 || k.mustWin && k.won(last) {
			break
		}
		for _, o := range last.result.Outputs {
			switch {
			case strings.HasPrefix(o.Path, "d/"):
				plain++
			case strings.HasPrefix(o.Path, "e/"):
				swapped++
			}
		}
	}
	last.windows = min(swapped, plain)
	if last.windows == 0 && len(last.through) == 0 && len(last.faults) == 0 {
		last.fault("the race never took place: %d times as laid, %d times swapped", plain, swapped)
	}
	return last
}

// won reports whether every attempt got through.
func (k *trial) won(f *findings) bool {
	return !slices.ContainsFunc(k.tries(), func(a attempt) bool { return f.through[a.name] == "" })
}

// shared is a program that nobody runs, and that a script may read.
const shared = "/usr/bin/pathchk"

// evicting has a program in memory, and looks whether it is there when the script
// has run.
func evicting(k *trial, ex executor.Executor) *findings {
	k.Helper()
	before, err := cached(shared)
	f := k.judged(func(token string) *findings {
		return k.script(k.Context(), ex, token, map[string]string{"shared": shared}, nil)
	})
	after, err2 := stillCached(shared)
	switch err := errors.Join(err, err2); {
	case err != nil || before == 0:
		f.said["dropped"] = said{"no", fmt.Sprint(err)}
	case after == 0:
		f.through["dropped"] = fmt.Sprintf("%d pages of %s are gone", before, shared)
	}
	return f
}

// leaking hands open files to whoever starts a program.
func leaking(k *trial, ex executor.Executor) *findings {
	k.Helper()
	defer k.host.unleak()
	if err := k.host.leak(); err != nil {
		k.Fatalf("hostile: leaking descriptors: %v", err)
	}
	return k.once(ex)
}

// overdue holds that the host answers without waiting for what the script left or
// does. If it does wait, that is ended.
func overdue(k *trial, ex executor.Executor) *findings {
	k.Helper()
	return k.judged(func(token string) *findings {
		ctx, cancel := context.WithCancelCause(k.Context())
		defer cancel(nil)
		laid := make(chan struct{}, 1)
		live, stop := watch(func(line string) {
			if strings.HasPrefix(line, "laid\tok") {
				laid <- struct{}{} // it is said once
			}
		})
		defer stop()
		ended := make(chan *findings, 1)
		go func() { ended <- k.script(ctx, ex, token, nil, live) }()
		late := time.NewTimer(k.timeout + patience)
		defer late.Stop()
		for {
			select {
			case f := <-ended:
				return f
			case <-laid:
				if k.mustWin && k.attempts("late") {
					late.Reset(k.timeout + soon)
				}
			case <-late.C:
				end(token)
				cancel(errStopped)
				f := <-ended
				f.through["late"] = fmt.Sprintf("the host had not answered when a timeout of %v was long over, or the script had ended", k.timeout)
				return f
			}
		}
	})
}

// timeouts are those of scripts that do not end by themselves, one after the
// other until a script has come to lay its trap: a busy machine needs longer.
var timeouts = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// expiring runs a script until its timeout.
func expiring(k *trial, ex executor.Executor) (f *findings) {
	k.Helper()
	defer func() { k.timeout = 0 }()
	for _, k.timeout = range timeouts {
		f = overdue(k, ex)
		if f.said["laid"].outcome == "ok" || len(f.through) > 0 {
			return f
		}
	}
	return f
}

func crowd(p *gate.Policy) { p.Processes = 128 }

func timedOut(e executor.Ending) bool { return e.TimedOut() }

var errStopped = errors.New("hostile: the caller stops the run")

// watch calls f for each piece of output, until stop is called.
func watch(f func(line string)) (live *gate.Live, stop func()) {
	live = gate.NewLive(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range live.Chunks() {
			for line := range strings.Lines(string(c.Data)) {
				f(strings.TrimSuffix(line, "\n"))
			}
		}
	}()
	return live, func() { live.Close(); <-done }
}

// cancelled cancels a run as soon as its trap is laid.
func cancelled(k *trial, ex executor.Executor) *findings {
	k.Helper()
	return k.judged(func(token string) *findings {
		ctx, cancel := context.WithCancelCause(k.Context())
		defer cancel(nil)
		live, stop := watch(func(line string) {
			if strings.HasPrefix(line, "laid\tok") {
				cancel(errStopped)
			}
		})
		defer stop()
		f := k.script(ctx, ex, token, nil, live)
		if f.err == nil {
			f.fault("the run was not cancelled: %v", f.result.Ending)
		} else if !errors.Is(f.err, errStopped) {
			f.fault("R24: got error %v, want the cause of the context", f.err)
		}
		return f
	})
}

// visited runs a script that listens, and connects to it from the host. Whether
// it was met or not, the script is then stopped.
func visited(k *trial, ex executor.Executor) *findings {
	k.Helper()
	return k.judged(func(token string) *findings {
		ctx, cancel := context.WithCancelCause(k.Context())
		defer cancel(nil)
		var met atomic.Bool
		live, stop := watch(func(line string) {
			if port, ok := strings.CutPrefix(line, "port\tok\t"); ok {
				met.Store(visit(ctx, port) == token)
				cancel(errStopped)
			}
		})
		f := k.script(ctx, ex, token, nil, live)
		stop()
		if met.Load() {
			f.through["peer"] = "the host met the script"
		}
		return f
	})
}

// visit connects to a port of the host's loopback, and returns what is said there.
func visit(ctx context.Context, port string) string {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	b, _ := io.ReadAll(io.LimitReader(c, 100))
	return string(b)
}

// pair runs two scripts of two tenants, the second while the first waits with
// what it laid.
func pair(k *trial, ex executor.Executor) *findings {
	k.Helper()
	return k.both(ex, true)
}

// after runs the second when the first has ended.
func after(k *trial, ex executor.Executor) *findings {
	k.Helper()
	return k.both(ex, false)
}

func (k *trial) both(ex executor.Executor, together bool) *findings {
	k.Helper()
	return k.judged(func(token string) *findings {
		passed := newSecret()
		k.host.secrets[inToken] = passed
		more := map[string]string{"pair": newSecret(), "side": "second", "token": "0"}
		first := maps.Clone(more)
		first["side"], first["token"] = "first", passed
		second := func() *findings { return k.script(k.Context(), ex, token, more, nil) }
		ctx, cancel := context.WithCancelCause(k.Context())
		defer cancel(nil)
		laid := make(chan struct{}, 16)
		live, stop := watch(func(line string) {
			if strings.HasPrefix(line, "laid\tok") {
				laid <- struct{}{}
			}
		})
		defer stop()
		if !together {
			one := k.execute(k.Context(), ex, token, first, live)
			if _, ok := one.said["laid"]; !ok {
				one.fault("the first run laid nothing: %.300s", one.result.Stderr)
				return one
			}
			return second()
		}
		ended := make(chan *findings, 1)
		go func() { ended <- k.execute(ctx, ex, token, first, live) }()
		select {
		case <-laid:
		case one := <-ended:
			one.fault("the first run ended with %v: %.300s", one.result.Ending, one.result.Stderr)
			return one
		}
		f := second()
		cancel(errStopped)
		<-ended
		return f
	})
}
