//go:build linux && (amd64 || arm64)

package container_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2: a container of gVisor has the tier that its probe proved, and the posture says
// how.
func TestGVisorPosture(t *testing.T) {
	if !asRoot(t) {
		return
	}
	e, _ := open(t, container.Config{Engine: find(t, "runsc")})
	p, err := e.Posture(t.Context())
	if err != nil || p.Tier != grant.Kernel || p.Claimed {
		t.Errorf("got %+v, %v", p, err)
	}
	if last := p.Walls[len(p.Walls)-1]; last.Name != "kernel" || !last.Stands || !strings.Contains(last.Proof, "another kernel") {
		t.Errorf("the last wall is %+v", last)
	}
}

// B2: an OCI runtime that calls itself gVisor's and makes containers that share the
// host's kernel gets no tier: there is no executor.
func TestOtherKernelIsProved(t *testing.T) {
	if !asRoot(t) {
		return
	}
	text := `#!/bin/sh
if [ "$1" = --version ]; then echo "runsc version 1"; exit; fi
state=$2 log=$4
while [ "$1" != --bundle ]; do shift; done
exec ` + find(t, "crun") + ` --root "$state" --log="file:$log" --cgroup-manager=disabled run --detach --no-new-keyring --bundle "$2" --preserve-fds=1 "$5"
`
	engine := filepath.Join(t.TempDir(), "runsc")
	if err := execfile.Write(engine, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	e, err := container.New(container.Config{Engine: engine, Runtime: filepath.Join(t.TempDir(), "run")})
	if e != nil || !errors.Is(err, container.ErrWall) || !strings.Contains(err.Error(), "the container's kernel") {
		t.Errorf("got %v", err)
	}
}

// R19: what a script says in one piece arrives whole also where it is more
// than a pipe holds, on both streams, and before its end is told.
func TestGVisorRelays(t *testing.T) {
	if !asRoot(t) {
		return
	}
	e, _ := open(t, container.Config{Engine: find(t, "runsc")})
	const n = 200_000
	o := script("py", `import os, sys
assert os.write(1, b'o' * 200000) == 200000
assert os.write(2, b'e' * 200000) == 200000
open('/dev/stdout', 'wb', 0).write(b'O')
os.write(1, b'end')
sys.exit(3)
`)
	req, err := executortest.NewWorld(hostcase.Interpreters(t)).Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	res, err := e.Execute(t.Context(), req)
	if err != nil || res.Ending != executor.Exited(3) {
		t.Fatalf("%v, %v: %.300s", res.Ending, err, res.Stderr)
	}
	if got := string(res.Stdout); got != strings.Repeat("o", n)+"Oend" {
		t.Errorf("got %d bytes of standard output, which end with %q", len(got), got[max(0, len(got)-9):])
	}
	if got := string(res.Stderr); got != strings.Repeat("e", n) {
		t.Errorf("got %d bytes of standard error", len(got))
	}
}

// R06 where the kernel is the run's own: what it counts is not what the host does, so the
// host's own count of its processes is asked. They have no more time than has passed, and
// that of two periods of the limit.
func TestProcessorTimeOfGVisor(t *testing.T) {
	if !asRoot(t) || testing.Short() {
		return
	}
	e, runtime := open(t, container.Config{Engine: find(t, "runsc")})
	o := script("py", "import os\nfor i in range(3): os.fork()\nos.write(1, b'.')\nwhile True: pass\n")
	o.Policy.Timeout, o.Live = gate.CeilingTimeout, gate.NewLive(0)
	req, err := executortest.NewWorld(hostcase.Interpreters(t)).Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		defer cancel(errGaveUp)
		<-o.Live.Chunks()
		begin, before := time.Now(), processorTime(runtime)
		for end := begin.Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if used := processorTime(runtime) - before; used > 2*time.Second {
				if passed := time.Since(begin); used > passed+300*time.Millisecond {
					t.Errorf("within %v, it had %v of processor time", passed, used)
				}
				return
			}
		}
	}()
	if _, err := e.Execute(ctx, req); !errors.Is(err, errGaveUp) {
		t.Errorf("got %v", err)
	}
}

// processorTime returns what the processes of the one run have had.
func processorTime(runtime string) (sum time.Duration) {
	pids := map[string]bool{}
	for _, dir := range leftovers(runtime) {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, pid := range strings.Fields(string(text)) {
			pids[pid] = true
		}
	}
	for pid := range pids {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		for i := 11; i <= 12 && len(f) > 12; i++ { // user and system, in hundredths of a second
			n, _ := strconv.Atoi(f[i])
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
