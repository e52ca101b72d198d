//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// underWay starts runs that wait, one for each tenant named, and returns the
// cgroups of the runs, by hierarchy, while all wait.
func underWay(t *testing.T, e *sandbox.Executor, runtime string, tenants ...string) map[string][]string {
	t.Helper()
	w := executortest.NewWorld(hostcase.Interpreters(t))
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	t.Cleanup(over.Wait)
	t.Cleanup(cancel)
	for _, tenant := range tenants {
		o := script("sh", "echo ready; sleep 600\n")
		o.Tenant, o.Live = tenant, gate.NewLive(0)
		req := admit(t, w, o)
		over.Go(func() {
			if _, err := e.Execute(ctx, req); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		<-o.Live.Chunks()
	}
	sandbox.LetGo(e) // those that were made ahead are in no run's cgroup, but in the tenant's
	found := map[string][]string{}
	for _, path := range hostcase.List(runtime) {
		if name := filepath.Base(path); !strings.HasSuffix(name, ".lock") {
			for _, dir := range hostcase.Cgroups(name) {
				runs, err := filepath.Glob(filepath.Join(dir, "tenant-*/*/cgroup.procs"))
				if err != nil {
					t.Fatal(err)
				}
				for _, run := range runs {
					found[dir] = append(found[dir], filepath.Dir(run))
				}
			}
		}
	}
	return found
}

// B10: the runs of a tenant lie in one cgroup, which has the weight of every other
// tenant's: who has many runs takes no processor time from who has one.
func TestTenantsShareAlike(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	found := underWay(t, e, runtime, "many", "one", "many", "many")
	if len(found) == 0 {
		if stands(t, e, "processor time") {
			t.Error("the wall stands, and there is no cgroup")
		}
		t.Log("not promised: there are no cgroups here")
		return
	}
	weights := 0
	for dir, runs := range found {
		tenants := map[string]int{}
		for _, run := range runs {
			tenants[filepath.Dir(run)]++
		}
		var each []int
		for tenant, n := range tenants {
			each = append(each, n)
			for file, want := range map[string]string{"cpu.shares": "1024\n", "cpu.weight": "100\n"} {
				if got, err := os.ReadFile(filepath.Join(tenant, file)); err == nil {
					weights++
					if string(got) != want {
						t.Errorf("%s of %s is %q", file, tenant, got)
					}
				}
			}
			if procs, err := os.ReadFile(filepath.Join(tenant, "cgroup.procs")); err != nil || len(procs) > 0 {
				t.Errorf("in %s itself there are processes: %q, %v", tenant, procs, err)
			}
		}
		if slices.Sort(each); !slices.Equal(each, []int{1, 3}) {
			t.Errorf("in %s the tenants have %d runs", dir, each)
		}
	}
	if stands(t, e, "processor time") != (weights == 2) {
		t.Errorf("%d tenants have a weight", weights)
	}
}

// A limit of the rate of disks is off unless somebody asks for it; then it holds
// for each run, or there is no executor.
func TestDiskRate(t *testing.T) {
	said := func(e *sandbox.Executor) string {
		p, err := e.Posture(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range p.Walls {
			if w.Name == "disk" {
				return w.Proof
			}
		}
		return ""
	}
	off, _ := open(t, sandbox.Config{})
	if !strings.Contains(said(off), "is not limited") {
		t.Errorf("the posture says %q of a rate that is not limited", said(off))
	}
	if _, err := sandbox.New(sandbox.Config{Runtime: filepath.Join(t.TempDir(), "run"), DiskRate: -1}); err == nil {
		t.Error("a negative rate is accepted")
	}
	c := sandbox.Config{Runtime: filepath.Join(t.TempDir(), "run"), DiskRate: 8 << 20}
	e, err := sandbox.New(c)
	if err != nil {
		if step, ok := errors.AsType[*sandbox.StepError](err); !ok || !errors.Is(err, sandbox.ErrWall) || step.Step != "limiting the rate of disks" || step.Remedy == "" {
			t.Errorf("got error %v, want the wall and what to do", err)
		}
		t.Logf("not promised here: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(said(e), "at most 8388608 bytes a second") {
		t.Errorf("the posture says %q of a rate that is limited", said(e))
	}
	limited := 0
	for _, runs := range underWay(t, e, c.Runtime, "t") {
		for _, run := range runs {
			for _, file := range []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device", "io.max"} {
				if text, err := os.ReadFile(filepath.Join(run, file)); err == nil && strings.Contains(string(text), "8388608") {
					limited++
				}
			}
		}
	}
	if limited == 0 {
		t.Error("no file of a run's cgroup has the rate")
	}
}
