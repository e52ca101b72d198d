package remote_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/wire"
)

// R2: a runner service in another process keeps the rules of every executor.
func TestConformance(t *testing.T) {
	t.Parallel()
	p := startRunner(t, "process")
	extensions := []string{"sh", "py", "js"}
	if testing.Short() {
		extensions = extensions[:1] // the scripts are the same, and a language is the runner's matter
	}
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return open(t, p.address, nil) },
		Interpreters: names(extensions...),
		Leftovers:    func() []string { return leftovers(p.folder) },
		Lacks:        executortest.Lacks{Memory: true, Live: true},
	})
}

// needLive are the cases that go by what a script has written while it runs, such as those of two
// runs at once. From a runner there is no output before the end.
var needLive = []string{"U01", "U04", "U06", "U07", "U11", "G19", "N18"}

// B2, M09: no attack of the catalogue gets out of a box that another process makes.
func TestHostile(t *testing.T) {
	t.Parallel()
	p := startRunner(t, sandbox.Name)
	e := open(t, p.address, nil)
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !posture.Claimed || len(posture.Walls) == 0 {
		t.Errorf("M09: a runner's word is marked as its claim: %+v", posture)
	}
	var only []string
	for _, c := range hostile.Cases() {
		if !slices.Contains(needLive, c.ID) && !(testing.Short() && c.Hurts) {
			only = append(only, c.ID)
		}
	}
	s := hostile.Setup{Only: only, Races: time.Second, New: func(executortest.T) executor.Executor { return e }, Interpreters: names("py", "sh"), Lacks: hostile.Lacking(posture)}
	if testing.Short() {
		hostile.RunHarmless(t, s)
		return
	}
	hostile.Run(t, s)
}

// R30: what the runner tells of itself is what the wire says.
func TestInfo(t *testing.T) {
	e := open(t, startRunner(t, "process").address, nil)
	info, err := e.Info(t.Context())
	if err != nil || !info.Knows() || info.Name != "runner-1" || info.MaxInline != wire.MaxInline || len(info.Runtimes) != 3 {
		t.Errorf("got %+v, %v", info, err)
	}
}
