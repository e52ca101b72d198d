package hostile

import (
	"slices"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
)

// DefaultRaces is how long a case may try to win a race: 10 s, or 2,000 runs.
const DefaultRaces = 10 * time.Second

// A Setup says what to attack. New and Interpreters are required. All else that
// is zero is the strictest.
type Setup struct {
	// New returns the executor. It is called once.
	New func(t executortest.T) executor.Executor

	// Interpreters is the allow-list; "py" must be in it, and "sh" should.
	Interpreters map[string]gate.Interpreter

	// Lacks are the walls that the executor does not promise. Cases about them are
	// not run on it. Nil: it promises all. See [Lacking].
	Lacks []Wall

	// Loopback says that the policy gives a run a loopback of its own. Sockets of the
	// internet's families are no breach then; where they lead still is.
	Loopback bool

	// OwnKernel says that a run has a kernel of its own, as in the tiers "kernel" and
	// "vm". What that alone makes or tells is no breach then: its devices, its first
	// process, the kernel's own, what its /proc tells of it, the order in which it serves
	// the run's processes. What the host makes or tells still is.
	OwnKernel bool

	// Policy is what limits a run leaves to its tenant, where a case does not set
	// it; zero fields mean the gate's defaults.
	Policy gate.Policy

	// Control returns an executor that has not the wall, to show that each attempt
	// gets through there; nil where there is none. It is called once for a wall. Nil:
	// there are no controls, and no case is proved to test anything.
	Control func(t executortest.T, w Wall) executor.Executor

	// Only are the ids of the cases to run. Nil: all.
	Only []string

	// Folder is where the host's canaries are planted: a folder that every user can
	// enter. Empty: the folder for temporary files.
	Folder string

	// Races is how long a case may try to win a race. Zero: [DefaultRaces].
	Races time.Duration

	// Leftovers returns what runs have left on the host, and must return none when no
	// run is under way. Nil: it is not looked for.
	Leftovers func() []string

	// Report gets a row for each case, when it is over. Nil: nobody does.
	Report func(Row)
}

// Run attacks the executor with every case, in every language that the case is
// written in. The last thing that it logs is a table.
func Run[P executortest.Tester[P]](t P, s Setup) {
	t.Helper()
	runAll(adapt(t), s, slices.Concat(harmlessCases(), hurtfulCases()), false)
}

// RunHarmless is Run for an operator's own host. It leaves out the cases by which
// a host would suffer on which the wall is missing after all: whoever links it
// alone does not even hold them.
func RunHarmless[P executortest.Tester[P]](t P, s Setup) {
	t.Helper()
	runAll(adapt(t), s, harmlessCases(), false)
}

// KnockOut holds that each case gets something through: what New returns is the
// executor without the wall that these cases are there for. Setup.Only names them.
func KnockOut[P executortest.Tester[P]](t P, s Setup) {
	t.Helper()
	if len(s.Only) == 0 {
		t.Fatalf("hostile: KnockOut without the cases that must turn red")
	}
	runAll(adapt(t), s, slices.Concat(harmlessCases(), hurtfulCases()), true)
}

// tester hides which kind of [executortest.Tester] is at work.
type tester struct {
	executortest.T
	run func(name string, f func(tester))
}

func adapt[P executortest.Tester[P]](t P) tester {
	return tester{t, func(name string, f func(tester)) { t.Run(name, func(t P) { f(adapt(t)) }) }}
}

// A Case is what is known of a case without running it.
type Case struct {
	ID    string `json:"id"`    // as docs/threat-model.md names it
	Title string `json:"title"` // what the script does
	Class string `json:"class"` // the attacker and the impact, such as "A3/HostLeak"
	Wall  Wall   `json:"wall"`  // what stands in its way
	Hurts bool   `json:"hurts"` // a host without the wall would suffer: it takes memory, processes, space or time
}
