package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A tester is what the suites need of a test. What fails is kept, not printed.
type tester struct {
	ctx context.Context
	all *sync.Mutex // what over does, it does alone

	// Over is called when a case is over, with the names of those around it and what
	// went wrong in it alone; group says that there were cases below it.
	over func(names, faults []string, group bool)

	mu       sync.Mutex
	names    []string
	group    bool
	failed   bool // or one below it
	faults   []string
	cleanups []func()
}

func newTester(ctx context.Context, over func(names, faults []string, group bool)) *tester {
	return &tester{ctx: ctx, all: &sync.Mutex{}, over: over}
}

// Helper does nothing: nobody asks for lines of source.
func (t *tester) Helper() {}

// Context is done when the operator gives up.
func (t *tester) Context() context.Context { return t.ctx }

// Logf drops what is said: a report has it.
func (t *tester) Logf(string, ...any) {}

// Cleanup calls f when the case is over.
func (t *tester) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Errorf keeps a fault.
func (t *tester) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// Fatalf keeps a fault and ends the case.
func (t *tester) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Run runs a case, and says whether nothing failed in it and below.
func (t *tester) Run(name string, f func(*tester)) bool {
	sub := newTester(t.ctx, t.over)
	sub.all, sub.names = t.all, append(slices.Clip(t.names), name)
	sub.do(f)
	t.mu.Lock()
	t.group = true
	t.failed = t.failed || sub.failed
	t.mu.Unlock()
	t.all.Lock()
	defer t.all.Unlock()
	t.over(sub.names, sub.faults, sub.group)
	return !sub.failed
}

// do runs f in a goroutine of its own, which Fatalf may end, and what it asked to
// have called at its end. It returns what went wrong outside of cases.
func (t *tester) do(f func(*tester)) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(t.cleanups) {
				c()
			}
		}()
		f(t)
	}()
	<-done
	if len(t.faults) > 0 {
		return fmt.Errorf("conformance: %s", strings.Join(t.faults, "; "))
	}
	return nil
}
