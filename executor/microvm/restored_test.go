//go:build microvm && linux && amd64

package microvm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// chance prints what no two machines may have alike, the time, and what the run before it
// may have left; and leaves something everywhere.
const chance = `import glob, os, random, sys, time, uuid
print(os.urandom(16).hex())
print(open("/dev/urandom", "rb").read(16).hex())
print(uuid.uuid4(), uuid.uuid1())
print(random.random(), random.getrandbits(64))
print(hash("what each process hashes otherwise"), id(object()))
print(time.time())
left = [f for d in ("/tmp", "/tmp/home", "/dev/shm", "/inputs", "/outputs", "/skill") for f in glob.glob(d + "/*left*")]
print(left, os.getpid(), len(glob.glob("/proc/[0-9]*")))
for d in ("/tmp", "/tmp/home", "/dev/shm", "/outputs", "/skill"):
    open(d + "/left", "w").write("of a run")
if os.fork() == 0:
    time.sleep(1000)
`

// A saying is what chance prints.
type saying []string

func chanceOf(t *testing.T, e *microvm.Executor, req executor.Request) saying {
	t.Helper()
	before := time.Now()
	res, err := e.Execute(t.Context(), req)
	after := time.Now()
	if err != nil {
		t.Fatalf("%v; standard error: %.500q", err, res.Stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	if len(lines) != 7 {
		t.Fatalf("got %q, %.500q", res.Stdout, res.Stderr)
	}
	var now float64
	if _, err := fmt.Sscan(lines[5], &now); err != nil {
		t.Fatal(err)
	}
	// A machine's clock may go a little faster or slower than the host's.
	if at := time.UnixMicro(int64(now * 1e6)); at.Before(before.Add(-time.Second)) || at.After(after.Add(time.Second)) {
		t.Errorf("U14: in the machine it was %s, and here between %s and %s", at, before, after)
	}
	if !strings.HasPrefix(lines[6], "[] ") {
		t.Errorf("B3: another run is seen: %s", lines[6])
	}
	return lines[:5]
}

// differ holds that the runs have nothing alike that comes of chance.
func differ(t *testing.T, runs ...saying) {
	t.Helper()
	for line := range runs[0] {
		seen := map[string]bool{}
		for _, r := range runs {
			for word := range strings.FieldsSeq(r[line]) {
				if seen[word] {
					t.Errorf("U14: two runs have %q alike", word)
				}
				seen[word] = true
			}
		}
	}
}

func posture(t *testing.T, e *microvm.Executor) string {
	t.Helper()
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(p.Walls)
}

// U14, B3: machines of one saved machine have chance of their own, the right time and
// nothing of each other: those that are restored for a call and those that waited for it.
// One that hangs when it is restored is killed and counted, and the run has another one. A
// saved machine that was altered is refused, and made anew.
func TestRestored(t *testing.T) {
	// What other tests' interpreters saved would be altered, and not used again.
	if err := os.RemoveAll(filepath.Join(kitDir(), "snapshots")); err != nil {
		t.Fatal(err)
	}
	e, runtime := open(t, microvm.Config{Ahead: 2})
	if text := posture(t, e); !strings.Contains(text, "of a saved one") {
		t.Errorf("the posture does not say that machines are restored: %s", text)
	}
	w := executortest.NewWorld(interpreters(t))
	req, err := w.Admit(t.Context(), script("py", chance))
	if err != nil {
		t.Fatal(err)
	}
	runs := []saying{chanceOf(t, e, req), chanceOf(t, e, req)}
	if err := microvm.AwaitAhead(t.Context(), e); err != nil { // the second call makes one expect a third
		t.Fatal(err)
	}
	runs = append(runs, chanceOf(t, e, req))
	if served := microvm.Served(e); served != 1 {
		t.Errorf("%d machines were taken that had been made ahead, want 1", served)
	}
	if e.Hung() != 0 {
		t.Errorf("%d machines hung", e.Hung())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("B3: still there: %q", left)
	}

	list, err := microvm.Snapshots(kitDir())
	if err != nil || len(list) != 2 { // that of the probe, and the runs'
		t.Fatalf("saved: %+v, %v", list, err)
	}
	for _, s := range list {
		name := filepath.Join(kitDir(), "snapshots", s.Key.Hex())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err == nil {
			b := make([]byte, 1)
			if _, err = f.ReadAt(b, s.Bytes/2); err == nil {
				_, err = f.WriteAt([]byte{b[0] ^ 1}, s.Bytes/2)
			}
			f.Close()
		}
		if err != nil || s.Err != nil {
			t.Fatal(err, s.Err)
		}
	}
	if list, err = microvm.Snapshots(kitDir()); err != nil || list[0].Err == nil || list[1].Err == nil {
		t.Errorf("B1: altered: %+v, %v", list, err)
	}
	again, _ := open(t, microvm.Config{Ahead: -1})
	runs = append(runs, chanceOf(t, again, req))
	if list, err = microvm.Snapshots(kitDir()); err != nil || slices.ContainsFunc(list, func(s microvm.Snapshot) bool { return s.Err != nil }) {
		t.Errorf("B1: not made anew: %+v, %v", list, err)
	}
	was := microvm.SetRestoreTime(again, time.Microsecond)
	runs = append(runs, chanceOf(t, again, req))
	if again.Hung() != 1 {
		t.Errorf("%d machines were counted that hung, want 1", again.Hung())
	}
	microvm.SetRestoreTime(again, was)
	runs = append(runs, chanceOf(t, again, req))
	differ(t, runs...)
}

// B3, B10: runs of many callers, of few and of one, on a busy machine, hang nowhere, and
// leave no process, no descriptor, no cgroup and no memory.
func TestManyRuns(t *testing.T) {
	times := 1
	if full { // from six minutes to half an hour, where machines are interpreted: ./check long
		times = 17
	}
	interpreters(t)
	before, descriptors, host := hostcase.Memory(t), len(hostcase.List("/proc/self/fd")), hostcase.HostMemory(t)
	e, runtime := open(t, microvm.Config{Ahead: 2})
	w := executortest.NewWorld(interpreters(t))
	req, err := w.Admit(t.Context(), script("sh", "head -c 8 /dev/urandom >outputs/chance && echo ok\n"))
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for !stop.Load() {
			}
		})
	}
	runs := 0
	// Where more runs are under way than there are processors, no machine is made ahead.
	for _, p := range []struct{ callers, each int }{{4, times}, {2, 3 * times}, {1, 2 * times}} {
		var callers sync.WaitGroup
		for range p.callers {
			callers.Go(func() {
				for range p.each {
					if res, err := e.Execute(t.Context(), req); err != nil || res.Ending != executor.Exited(0) {
						t.Errorf("got %v, %v, %.200q", res.Ending, err, res.Stderr)
					}
				}
			})
		}
		callers.Wait()
		runs += p.callers * p.each
	}
	stop.Store(true)
	load.Wait()
	if err := microvm.AwaitAhead(t.Context(), e); err != nil {
		t.Error(err)
	}
	open := hostcase.Memory(t) // what is held is seen, and so would be what is left
	t.Logf("%d runs, %d of them in a machine made ahead, %d machines hung", runs, microvm.Served(e), e.Hung())
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(runtime); len(left) > 0 || e.Hung() != 0 {
		t.Errorf("B3: still there: %q; %d hung", left, e.Hung())
	}
	if after := len(hostcase.List("/proc/self/fd")); after > descriptors {
		t.Errorf("B3: %d descriptors are open, and %d were before", after, descriptors)
	}
	after := hostcase.Memory(t)
	t.Logf("memory before: %s; %s", before, host)
	t.Logf("with a machine that waits: %s", open)
	t.Logf("after: %s; %s", after, hostcase.HostMemory(t))
	// After 12 runs and after 204 it was 0.6 and 0.9 MiB more than before; one machine that
	// waits has 21 MiB of its own, and a saved one 66.
	const most = 16 << 20
	if after.Sum() > before.Sum()+most {
		t.Errorf("B3: memory is left: %s; before: %s", after, before)
	}
	if open.Sum() < before.Sum()+2*most {
		t.Errorf("with a machine that waits there is no more memory than before: %s; before: %s", open, before)
	}
}
