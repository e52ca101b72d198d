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
	ctx  context.Context
	over func(name string, faults []string) // a case of the top is over

	mu       sync.Mutex
	name     string
	depth    int
	faults   []string
	cleanups []func()
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
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// Fatalf keeps a fault and ends the case.
func (t *tester) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Run runs a case. Its faults are those of the cases below it too.
func (t *tester) Run(name string, f func(*tester)) bool {
	sub := &tester{ctx: t.ctx, over: t.over, name: strings.TrimPrefix(t.name+"/"+name, "/"), depth: t.depth + 1}
	faults := sub.do(f)
	if len(faults) > 0 && t.depth > 0 {
		t.mu.Lock()
		for _, fault := range faults {
			t.faults = append(t.faults, name+": "+fault)
		}
		t.mu.Unlock()
	}
	if t.depth == 0 {
		t.over(name, faults)
	}
	return len(faults) == 0
}

// do runs f in a goroutine of its own, which Fatalf may end, and what it asked to
// have called at its end.
func (t *tester) do(f func(*tester)) []string {
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
	return t.faults
}
