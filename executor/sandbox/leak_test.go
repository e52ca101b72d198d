//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
	"go.uber.org/goleak"
)

func descriptors(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, to)
		}
	}
	return open
}

// B3, case 40: a few hundred runs of every ending leave no process, no cgroup, no
// mount, no folder, no descriptor and no goroutine. Two thousand through the whole
// house, 200 of which time out, are counted in room bench.
func TestNothingLeaks(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	everything := func() {
		for _, text := range []string{
			"echo hi\n", "exit 3\n", "kill -9 $$\n", "sleep 60 & echo hi\n", "setsid sleep 60 & echo hi\n",
			"while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n", "mkfifo outputs/x; echo x >outputs/y\n",
		} {
			o := of("one", script("sh", text))
			o.Policy.MaxOutput = 1024
			if _, err := e.Execute(t.Context(), admit(t, w, o)); err != nil {
				t.Error(err)
			}
		}
		o := of("one", script("sh", "sleep 60\n"))
		o.Policy.Timeout = 20 * time.Millisecond
		if res, err := e.Execute(t.Context(), admit(t, w, o)); err != nil || res.Ending != executor.Expired() {
			t.Error(res.Ending, err)
		}
		// Cancelled at any moment, the start of the box too.
		for _, after := range []time.Duration{0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 20 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if _, err := e.Execute(ctx, admit(t, w, of("one", script("sh", "sleep 60\n")))); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("cancelled after %v: got error %v", after, err)
			}
			cancel()
		}
	}
	everything() // whatever is made once is made now
	sandbox.LetGo(e)
	before, mounted, goroutines := descriptors(t), hostcase.Mounts(t), goleak.IgnoreCurrent()
	for range 20 {
		everything()
	}
	sandbox.LetGo(e)
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("descriptors: %d before and %d after: %q", len(before), len(after), after)
	}
	if left := hostcase.Mounted(t, mounted); len(left) > 0 {
		t.Errorf("left mounted: %q", left)
	}
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if err := hostcase.Eventually(func() error { return goleak.Find(goroutines) }); err != nil {
		t.Error(err)
	}
}

// B3, R6: many runs at once, every fourth cut off at its timeout, end each as it
// must and leave nothing. SOAK multiplies them.
func TestManyAtOnce(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	n := 120
	if soak, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && soak > 0 {
		n *= soak
	}
	before := descriptors(t)
	turn := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			o, want := script("sh", fmt.Sprintf("sleep 60 & echo %d >outputs/n; echo %d\n", i, i)), executor.Exited(0)
			if i%4 == 0 {
				o, want = script("sh", fmt.Sprintf("echo %d; (while :; do sleep 1 & done)\n", i)), executor.Expired()
				o.Policy.Timeout = 300 * time.Millisecond
			}
			res, err := e.Execute(t.Context(), admit(t, w, of(strconv.Itoa(i%3), o)))
			// One that is cut off may not have come to print anything.
			printed := string(res.Stdout) == fmt.Sprintln(i) || want == executor.Expired() && len(res.Stdout) == 0
			if err != nil || res.Ending != want || !printed || (want == executor.Exited(0)) != (len(res.Outputs) == 1) {
				t.Errorf("run %d: got %v, %q, %v, %s", i, res.Ending, res.Stdout, err, res.Stderr)
			}
		})
	}
	wg.Wait()
	sandbox.LetGo(e)
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("descriptors: %d before and %d after: %q", len(before), len(after), after)
	}
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
