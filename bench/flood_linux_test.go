package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
	"github.com/tracon-go/tracon/toolcall"
)

// What is asked at once, and with how much of it a host must do.
const (
	floodTenants = 20
	floodSlow    = 2 // tenants whose scripts never end by themselves
	floodSlots   = 8
	floodBytes   = 150 << 20 // the host's peak, without the scripts
)

// floodEnv says that this process is the host that is flooded.
const floodEnv = "TRACON_TEST_FLOOD"

// B3, B10, R16, R21: of two thousand calls at once (a quarter under the race detector),
// with eight slots and room for all of them to wait, a tenth of which time out, each runs
// once, ends once, and has one admission and one ending in the log and one record. The
// host's memory does not grow with what waits, and nothing is left.
func TestTwoThousandCallsAtOnce(t *testing.T) {
	if os.Getenv(floodEnv) == "" {
		alone(t) // the peak of a process counts, so it must have done nothing else
		return
	}
	runtime := filepath.Join(t.TempDir(), "run")
	boxes, err := sandbox.New(sandbox.Config{Runtime: runtime, Ahead: -1}) // a box that waits for a call is left by no run, but is counted
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := boxes.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(runtime); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	}()
	counted := &counting{Executor: boxes, runs: map[string]int{}}
	st := openSQLite(t)
	h := newHouse(t, st, tracon.Config{
		Executor: counted, Slots: floodSlots, Queue: floodTenants * floodEach, SlotWait: time.Hour,
	}, "echo.sh", bundle.File{Path: "echo.sh", Data: []byte("echo \"$1\"\n")}, bundle.File{Path: "hang.sh", Data: []byte("sleep 600\n")},
		bundle.File{Path: "large", Data: bytes.Repeat([]byte{'x'}, 128<<10)})
	var calls []gate.Call
	for i := range floodTenants {
		tenant, script, timeout := fmt.Sprintf("tenant-%d", i), "echo.sh", 10*time.Minute
		if i < floodSlow {
			script, timeout = "hang.sh", 100*time.Millisecond
		}
		call := h.open(t, tenant, script, timeout)
		if _, err := h.Run(t.Context(), call); err != nil { // whatever is made once is made now
			t.Fatal(err)
		}
		for range floodEach {
			calls = append(calls, call)
		}
	}
	before, mounted := census(t, runtime), hostcase.Mounts(t)

	outcomes := make([]tracon.Outcome, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			call.Arguments = fmt.Appendf(nil, `["%d"]`, i)
			want, printed := executor.Exited(0), fmt.Sprintln(i)
			if call.Script == "hang.sh" {
				want, printed = executor.Expired(), ""
			}
			out, err := h.Run(t.Context(), call)
			if err != nil || out.Ending != want || out.Stdout != printed {
				t.Errorf("call %d: got %v, %q, %v; %s", i, out.Ending, out.Stdout, err, out.Stderr)
			}
			outcomes[i] = out
		})
	}
	wg.Wait()
	peak := peakMemory(t)

	if after := census(t, runtime); !maps.Equal(before, after) {
		t.Errorf("before the calls there were %v, and after them %v", before, after)
	}
	if left := hostcase.Mounted(t, mounted); len(left) > 0 {
		t.Errorf("left mounted: %q", left)
	}
	if s := h.Stats(); s.InUse != 0 || s.Waiting != 0 || s.Abandoned != 0 {
		t.Errorf("slots: %+v", s)
	}
	kept := map[string]map[audit.Kind]int{}
	for leaf, err := range h.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e := leaf.Entry; e.Run != "" {
			if kept[e.Run] == nil {
				kept[e.Run] = map[audit.Kind]int{}
			}
			kept[e.Run][e.Kind]++
		}
	}
	once := map[audit.Kind]int{audit.Admission: 1, audit.Ending: 1}
	for i, out := range outcomes {
		if !maps.Equal(kept[out.ID], once) || counted.runs[out.ID] != 1 {
			t.Errorf("call %d: %d runs, and in the log %v", i, counted.runs[out.ID], kept[out.ID])
		}
		if _, err := st.Call(t.Context(), calls[i].Tenant, out.ID); err != nil {
			t.Errorf("call %d: its record: %v", i, err)
		}
	}
	records := 0
	for i := range floodTenants {
		list, err := st.Calls(t.Context(), fmt.Sprintf("tenant-%d", i), toolcall.Filter{Limit: 2 * floodEach})
		if err != nil {
			t.Fatal(err)
		}
		records += len(list)
	}
	if want := len(calls) + floodTenants; len(kept) != want || len(counted.runs) != want || records != want {
		t.Errorf("of %d calls the log has %d, the executor %d, the records %d", want, len(kept), len(counted.runs), records)
	}
	if _, err := h.log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	t.Logf("peak memory of the host: %.1f MiB", float64(peak)/(1<<20))
	if !raceDetector && peak > floodBytes {
		t.Errorf("the host's memory reached %d bytes, and must stay within %d", peak, floodBytes)
	}
}

// alone runs the test once more, in a process of its own.
func alone(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), floodEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("\n--- PASS: "+t.Name()+" ")) {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-64<<10):])
	}
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, "peak memory"); ok {
			t.Log("peak memory " + strings.TrimSpace(text))
		}
	}
}

// counting counts how often each call is executed.
type counting struct {
	executor.Executor
	mu   sync.Mutex
	runs map[string]int
}

func (c *counting) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	c.mu.Lock()
	c.runs[req.ID()]++
	c.mu.Unlock()
	return c.Executor.Execute(ctx, req)
}

// census counts what runs could leave.
func census(t *testing.T, runtime string) map[string]int {
	t.Helper()
	n := map[string]int{}
	read := func(dir string) []string {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a process may have ended meanwhile
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	for _, fd := range read("/proc/self/fd") {
		// A store has as many files open as it had readers at once.
		if to, err := os.Readlink("/proc/self/fd/" + fd); err == nil && !strings.Contains(to, "/tracon.db") {
			n["descriptors"]++
		}
	}
	for _, pid := range read("/proc") {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			n["children"]++
		}
	}
	instances := read(runtime)
	for _, name := range instances {
		if !strings.HasSuffix(name, ".lock") {
			n["folders of runs"] += len(read(filepath.Join(runtime, name)))
		}
	}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.ContainsFunc(instances, func(name string) bool { return strings.Contains(path, "/tracon-"+name) }) {
			n["cgroups"]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// peakMemory returns the most memory that this process has had, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscanf(text, "%d kB", &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the kernel tells no peak")
	return 0
}
