// Package executortest says what every executor must do, as a suite that any
// executor can be run through.
//
//	func TestExecutor(t *testing.T) {
//		executortest.Run(t, executortest.Setup{
//			New:          func(executortest.T) executor.Executor { return mine },
//			Interpreters: map[string]gate.Interpreter{"sh": …, "py": …, "js": …},
//		})
//	}
//
// A failure begins with the rule that was broken. A Request comes out of a real
// gate over a store in memory: there is no other way to make one, here neither.
//
// # Dialects
//
// The scripts of the cases are written in sh, Python and JavaScript, and each
// case runs in every dialect whose extension stands in Setup.Interpreters.
// Another language is added as a [Dialect]: the programs that a dialect has are
// listed at [Program].
//
// # Without package testing
//
// [Run] takes anything that has the few methods of [Tester], so that a command
// can run the suite against a deployed executor.
package executortest
