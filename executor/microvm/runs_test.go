//go:build microvm && linux && amd64

package microvm_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/gate"
)

func script(ext, text string) executortest.Order {
	return executortest.Order{Files: []bundle.File{{Path: "main." + ext, Data: []byte(text)}}, Script: "main." + ext, Mode: gate.None, Policy: gate.Policy{Timeout: 30 * time.Minute}}
}

// hungry is a script that takes memory for ever.
func hungry() executortest.Order {
	o := script("py", "held = []\nwhile True:\n    held.append(bytearray(b'x' * (1 << 20)))\n")
	o.Policy.Memory = 64 << 20
	return o
}

// R2, B3, B5: Python and sh run in machines, with files in and out; what a script in one
// sees is the machine's: its own kernel, chance of its own, no network, no rights. One that
// takes too much memory is stopped before it reads its own programs again and again.
func TestRuns(t *testing.T) {
	e, runtime := open(t, microvm.Config{})
	w := executortest.NewWorld(interpreters(t))
	run := func(o executortest.Order) executor.Result {
		t.Helper()
		req, err := w.Admit(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Execute(t.Context(), req)
		if err != nil {
			t.Fatalf("%v; standard error: %.500q", err, res.Stderr)
		}
		if left := leftovers(runtime); len(left) > 0 {
			t.Errorf("B3: still there: %q", left)
		}
		return res
	}
	o := script("py", `import os, random, uuid
open("outputs/made.txt", "w").write(open("inputs/given.txt").read().upper())
open("inputs/given.txt", "a").write("more")
open("beside.txt", "w").write("x")
print(os.uname().release)
print(uuid.uuid4(), random.random(), os.urandom(8).hex())
os._exit(3)
`)
	o.Inputs = []bundle.File{{Path: "given.txt", Data: []byte("given ")}, {Path: "same.txt", Data: []byte("same")}}
	first := run(o)
	want := []bundle.File{{Path: "inputs/given.txt", Data: []byte("given more")}, {Path: "made.txt", Data: []byte("GIVEN ")}}
	if first.Ending != executor.Exited(3) || !slices.EqualFunc(first.Outputs, want, func(a, b bundle.File) bool { return a.Path == b.Path && string(a.Data) == string(b.Data) }) {
		t.Errorf("got %v, %q, %q; standard error: %.500q", first.Ending, first.Outputs, first.Notes, first.Stderr)
	}
	if !strings.Contains(strings.Join(first.Notes, "\n"), "beside.txt") || first.PostureDigest.IsZero() {
		t.Errorf("got notes %q, posture %s", first.Notes, first.PostureDigest)
	}
	host, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if kernel, _, _ := strings.Cut(string(first.Stdout), "\n"); kernel+"\n" == string(host) || !strings.Contains(kernel, "cloud-amd64") {
		t.Errorf("a script sees the kernel %q, and the host has %q", kernel, host)
	}
	second := run(o)
	if string(first.Stdout) == string(second.Stdout) || string(second.Stdout) == "" {
		t.Errorf("U14: two runs have the same chance: %q", first.Stdout)
	}
	walls := run(script("sh", `cat /proc/self/cgroup
ls / 2>/dev/null
cat /proc/self/status | grep -E 'Cap|NoNewPrivs|Seccomp:' 
cat /proc/net/dev /sys/class/net/*/address 2>/dev/null
: >/usr/x || : >/etc/x || : >/x || echo closed
exec 3<>/dev/tcp/127.0.0.1/1
`))
	if out := string(walls.Stdout); !strings.HasPrefix(out, "0::/\nCap") || strings.Count(out, "0000000000000000") != 5 || !strings.HasSuffix(out, "NoNewPrivs:\t1\nSeccomp:\t2\nclosed\n") {
		t.Errorf("within a machine: %q, %q", out, walls.Stderr)
	}
	if res := run(hungry()); res.Ending != executor.OutOfMemory() {
		t.Errorf("case 31: a script that takes memory for ever ended with %v", res.Ending)
	}
}

// R23, R24, case 22, B3: a machine is killed from outside at the timeout, at a
// cancellation and when the executor is closed, whatever its script does, and nothing of
// it is left.
func TestStopped(t *testing.T) {
	e, runtime := open(t, microvm.Config{})
	w := executortest.NewWorld(interpreters(t))
	o := script("sh", "trap '' TERM INT; echo begun; while :; do :; done\n")
	o.Policy.Timeout = time.Second
	req, err := w.Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	res, err := e.Execute(t.Context(), req)
	if err != nil || res.Ending != executor.Expired() || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "with its machine") {
		t.Errorf("R23: got %v, %v, %q", res.Ending, err, res.Notes)
	}
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("B3: after the timeout there is still %q", left)
	}
	o = script("sh", "echo begun; while :; do :; done\n")
	o.Live = gate.NewLive(0)
	if req, err = w.Admit(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() {
		for range o.Live.Chunks() { // it has begun
			break
		}
		closed <- e.Close()
	}()
	if _, err := e.Execute(t.Context(), req); err == nil || errors.Is(err, executor.ErrUnavailable) || !strings.Contains(err.Error(), "closed while the script ran") {
		t.Errorf("closed: got %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, microvm.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A machine that does not come up is killed and counted, and others are tried; nobody has
// been told of the script then. Case 31: in one that came up a script is the first who reads
// its interpreter, which counts as its memory; that is not read again and again where there
// is no more.
func TestHangsAtBoot(t *testing.T) {
	e, runtime := open(t, microvm.Config{Snapshots: -1})
	w := executortest.NewWorld(interpreters(t))
	req, err := w.Admit(t.Context(), hungry())
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Execute(t.Context(), req); err != nil || res.Ending != executor.OutOfMemory() {
		t.Errorf("case 31: a script that takes memory for ever ended with %v, %v", res.Ending, err)
	}
	if req, err = w.Admit(t.Context(), script("sh", "echo never\n")); err != nil {
		t.Fatal(err)
	}
	microvm.SetBootTime(e, time.Millisecond) // no machine is that fast
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) || !errors.Is(err, microvm.ErrMachine) {
		t.Errorf("got %v", err)
	}
	if n := e.Hung(); n != 3 {
		t.Errorf("%d machines were counted, want 3", n)
	}
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("B3: still there: %q", left)
	}
}
