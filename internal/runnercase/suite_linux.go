package runnercase

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
)

// An Opening starts a runner in another process, by [Open] with the local executor of
// that name and the folder, and returns the executor that sends scripts to it, with what
// is told of it.
type Opening func(t testing.TB, local, folder string) (executor.Executor, executor.Posture)

// Conformance holds that a runner elsewhere keeps the rules of every executor (R2).
func Conformance(t *testing.T, open Opening) {
	folder := filepath.Join(t.TempDir(), "run")
	e, _ := open(t, process.Name, folder)
	extensions := []string{"sh", "py", "js"}
	if testing.Short() {
		extensions = extensions[:1] // the scripts are the same, and a language is the runner's matter
	}
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return e },
		Interpreters: Names(extensions...),
		Leftovers:    func() []string { return leftovers(folder) },
		Lacks:        executortest.Lacks{Memory: true, Live: true},
	})
}

// needLive are the cases that go by what a script has written while it runs, such as those of two
// runs at once. From a runner there is no output before the end.
var needLive = []string{"U01", "U04", "U06", "U07", "U11", "G19", "N18"}

// Hostile holds that no attack of the catalogue gets out of a box that another process
// makes (B2).
func Hostile(t *testing.T, open Opening) {
	e, posture := open(t, sandbox.Name, filepath.Join(t.TempDir(), "run"))
	if !posture.Claimed || len(posture.Walls) == 0 {
		t.Errorf("M09: a runner's word is marked as its claim: %+v", posture)
	}
	var only []string
	for _, c := range hostile.Cases() {
		if !slices.Contains(needLive, c.ID) && !(testing.Short() && c.Hurts) {
			only = append(only, c.ID)
		}
	}
	s := hostile.Setup{Only: only, Races: time.Second, New: func(executortest.T) executor.Executor { return e }, Interpreters: Names("py", "sh"), Lacks: hostile.Lacking(posture)}
	if testing.Short() {
		hostile.RunHarmless(t, s)
		return
	}
	hostile.Run(t, s)
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
