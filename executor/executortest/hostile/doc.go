// Package hostile attacks an executor as a hostile script would, and says what
// got through.
//
//	func TestHostile(t *testing.T) {
//		hostile.Run(t, hostile.Setup{
//			New:          func(executortest.T) executor.Executor { return mine },
//			Interpreters: map[string]gate.Interpreter{"py": …, "sh": …},
//			Control:      func(executortest.T, hostile.Wall) executor.Executor { return one without that wall },
//		})
//	}
//
// # How a case works
//
// The host gets canaries: files, a process, listeners, variables, a key, each
// with a secret of its own. A case runs a script that makes a number of attempts
// on them. What got through is told by the canaries: a secret that shows in
// anything that came back, a file that changed, a process that is gone, a
// connection that was counted. Only where an attempt is on nothing of the host
// (a system call, a limit), the script's own word counts.
//
// The same script then runs on the control, an executor without the wall: there
// each attempt must get through. One that does not proves nothing, and is an
// error, unless the case says why a host may lack what it needs.
//
// What an executor does not promise (Setup.Lacks) is not run on it, and is
// reported as "not promised". Strictest is the zero Setup: everything is promised.
//
// # Where it may run
//
// On Linux, on an executor whose scripts run on this very host. Nothing leaves
// the host. Attempts on limits are bounded: at most 300 processes, 230 MiB of
// memory, 200 MiB of files. They run only on an executor that promises the limit,
// and on the control. What a script leaves is ended by the suite, and else ends by
// itself after 200 s.
//
// No case fails because a host is busy: what must come is waited for.
package hostile
