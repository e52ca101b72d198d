//go:build linux

package hostile

import (
	"embed"
	"slices"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// Cases returns all cases, in the order in which they run.
func Cases() []Case { return append(HarmlessCases(), public(hurtfulCases(), true)...) }

// HarmlessCases returns the cases that [RunHarmless] knows, in their order.
func HarmlessCases() []Case { return public(harmlessCases(), false) }

func public(cases []testCase, hurts bool) []Case {
	var list []Case
	for _, c := range cases {
		list = append(list, Case{c.id, c.title, c.class, c.wall, hurts})
	}
	return list
}

// A testCase is one attack: a script, found by the id, and the attempts that it
// makes.
type testCase struct {
	id, title, class string
	wall             Wall
	tries            []attempt

	probes  *embed.FS                                 // where its scripts are
	armed   []string                                  // traps that the script must say to have laid
	numbers []string                                  // of system calls, that the script is told
	calls   []systemCall                              // that the script makes, one attempt each
	policy  func(*gate.Policy)                        // nil: the setup's
	ends    func(executor.Ending) bool                // how the script may end; nil: with exit code 0
	judge   func(*trial, *findings)                   // adds what the host alone knows
	play    func(*trial, executor.Executor) *findings // nil: the script runs once
}

// An attempt is one thing that a script tries. It got through when its detail
// shows the secret; without a secret, when the check says so; without either,
// when the script says so.
type attempt struct {
	name   string
	shows  secret
	check  func(*trial, said) bool
	judged bool   // the host knows it, not the script
	root   bool   // on the control, it works for root alone
	maybe  string // why it may not work on a host's control
	only   string // the language whose script makes it; empty: all do
	net    bool   // no breach where a run has a loopback of its own
	own    bool   // no breach where a run has a kernel of its own, which alone is concerned
}

// names returns attempts on nothing of the host.
func names(list ...string) []attempt {
	var tries []attempt
	for _, n := range list {
		tries = append(tries, attempt{name: n})
	}
	return tries
}

// showing returns attempts that must show the secret.
func showing(s secret, list ...string) []attempt {
	tries := names(list...)
	for i := range tries {
		tries[i].shows = s
	}
	return tries
}

// judged returns attempts of which the host knows.
func judged(list ...string) []attempt {
	tries := names(list...)
	for i := range tries {
		tries[i].judged = true
	}
	return tries
}

// forRoot returns attempts whose control works for root alone.
func forRoot(list ...string) []attempt {
	tries := names(list...)
	for i := range tries {
		tries[i].root = true
	}
	return tries
}

// perhaps returns attempts whose control may not work on every host.
func perhaps(why string, list ...string) []attempt {
	tries := names(list...)
	for i := range tries {
		tries[i].maybe = why
	}
	return tries
}

// of restricts attempts to the script of one language.
func of(ext string, tries []attempt) []attempt {
	for i := range tries {
		tries[i].only = ext
	}
	return tries
}

// ofKernel says that attempts concern nothing but the kernel that a run has.
func ofKernel(tries []attempt) []attempt {
	for i := range tries {
		tries[i].own = true
	}
	return tries
}

func all(groups ...[]attempt) []attempt { return slices.Concat(groups...) }

// from says where the cases have their scripts.
func from(probes *embed.FS, cases []testCase) []testCase {
	for i := range cases {
		cases[i].probes = probes
	}
	return cases
}

// harmlessCases are those of an operator's own host.
func harmlessCases() []testCase {
	return from(&harmlessProbes, slices.Concat(fileCases(), collectionCases(), processCases(), endingCases(), networkCases(), kernelCases(), runCases()))
}
