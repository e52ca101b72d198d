//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// R19, R23, cases 22, 26, 30, 31: each ending is told from those that look like it,
// by what the kernel says and never by what a script prints, and what the script
// wrote before is there.
func TestEndings(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	const (
		takes = "python3 -c 'x = []\nwhile True: x.append(bytearray(2**20))'"
		calls = "python3 -c 'import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)'"
		flood = "while :; do echo 0123456789012345678901234567890123456789; done"
	)
	for _, tc := range []struct {
		name, text string
		want       []executor.Ending // one of these: hosts differ in whom the kernel stops when memory is short
		memory     bool              // needs a cgroup
		note       string
	}{
		{"out of memory", "exec " + takes, []executor.Ending{executor.OutOfMemory()}, true, ""},
		{"a child is out of memory", takes + "; exit 3", []executor.Ending{executor.Exited(3), executor.OutOfMemory()}, true, "killed at the limit of memory"},
		{"killed by itself", "kill -9 $$", []executor.Ending{executor.Signaled(9)}, false, ""},
		{"a code that looks like a kill", "echo Killed >&2; exit 137", []executor.Ending{executor.Exited(137)}, false, ""},
		{"a call that kills", "exec " + calls, []executor.Ending{executor.PolicyViolation()}, false, ""},
		{"a call that kills a child", calls + "; exit 4", []executor.Ending{executor.Exited(4)}, false, ""},
		{"a code that looks like that", "echo Bad system call >&2; exit 159", []executor.Ending{executor.Exited(159)}, false, ""},
		{"aborted", "kill -ABRT $$", []executor.Ending{executor.Signaled(6)}, false, ""},
		{"a flood of output", flood, []executor.Ending{executor.OutputFlood()}, false, ""},
		{"a flood of errors", flood + " >&2", []executor.Ending{executor.OutputFlood()}, false, ""},
		{"a flood of a child", "(" + flood + ") & sleep 600", []executor.Ending{executor.OutputFlood()}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.memory && !stands(t, e, "memory") {
				t.Log("not promised: no cgroup holds memory here")
				return
			}
			o := script("sh", "echo progress\n"+tc.text+"\n")
			o.Policy.MaxOutput, o.Policy.Memory = 1024, 64<<20
			res, err := e.Execute(t.Context(), admit(t, w, o))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(tc.want, res.Ending) {
				t.Errorf("got %v, want one of %v; standard error: %s", res.Ending, tc.want, res.Stderr)
			}
			if !strings.HasPrefix(string(res.Stdout), "progress\n") {
				t.Errorf("what was printed before is lost: %q", res.Stdout)
			}
			if flooded := res.Ending == executor.OutputFlood(); res.Truncated != flooded || len(res.Stdout) > 1024 || len(res.Stderr) > 1024 {
				t.Errorf("truncated %v with %d and %d bytes", res.Truncated, len(res.Stdout), len(res.Stderr))
			}
			if _, exited := res.Ending.ExitCode(); exited && !strings.Contains(strings.Join(res.Notes, "\n"), tc.note) {
				t.Errorf("the notes are %q, want %q among them", res.Notes, tc.note)
			}
		})
	}
}
