package runnercase

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
)

// An Elsewhere is an executor that sends scripts to a runner in another process.
type Elsewhere struct {
	executor.Executor
	Posture executor.Posture // as the runner tells it
	Busy    func() int       // how many runs the runner has now
}

// An Opening starts a runner in another process, by [Open] with the local executor of
// that name and the folder.
type Opening func(t testing.TB, local, folder string) Elsewhere

// Conformance holds that a runner elsewhere keeps the rules of every executor (R2).
func Conformance(t *testing.T, open Opening) {
	folder := filepath.Join(t.TempDir(), "run")
	e := open(t, process.Name, folder)
	extensions := []string{"sh", "py", "js"}
	if testing.Short() {
		extensions = extensions[:1] // the scripts are the same, and a language is the runner's matter
	}
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return e.Executor },
		Interpreters: Names(extensions...),
		Leftovers:    func() []string { return leftovers(folder) },
		Lacks:        executortest.Lacks{Memory: true},
	})
}

// Hostile holds that no attack of the catalogue gets out of a box that another process
// makes (B2).
func Hostile(t *testing.T, open Opening) {
	e := open(t, sandbox.Name, filepath.Join(t.TempDir(), "run"))
	if !e.Posture.Claimed || len(e.Posture.Walls) == 0 {
		t.Errorf("M09: a runner's word is marked as its claim: %+v", e.Posture)
	}
	s := hostile.Setup{Races: time.Second, New: func(executortest.T) executor.Executor { return settled{e} }, Interpreters: Names("py", "sh"), Lacks: hostile.Lacking(e.Posture)}
	if testing.Short() {
		hostile.RunHarmless(t, s)
		return
	}
	hostile.Run(t, s)
}

// A settled does not answer for a run that was cancelled before the runner is done with
// it, as a local executor does not: the suite looks at once for what is left.
type settled struct{ Elsewhere }

func (s settled) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	res, err := s.Elsewhere.Execute(ctx, req)
	for deadline := time.Now().Add(time.Minute); ctx.Err() != nil && s.Busy() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	return res, err
}

// leftovers waits until the runs below the folder are gone: an executor elsewhere is
// told that a run is not wanted, and its end is not waited for.
func leftovers(folder string) []string {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		runs, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
		if len(runs) == 0 || time.Now().After(deadline) {
			return runs
		}
	}
}
