// Package runnerapi is the runner service: it takes runs that another host's gates
// have decided on, by the JSON of package wire, and has them made here.
//
// A [Service] is the core: it hands each run to the second door, see
// [github.com/tracon-go/tracon/gate.Gate.Accept], and tells what came of it.
// [Service.Handler] is its HTTP; another way in calls [Service.Run].
//
//	POST runs               a run: R28, and the member "tracon"; its output while it lasts, where Accept asks
//	PUT  bundles/{digest}   a closure, once, for the runs that name its digest; HEAD asks
//	GET  info               what the runner has, and how it stands
//	GET  healthz, readyz    whether it lives, and whether it takes runs
//
// What a peer uploads is that peer's alone, in memory, and may be forgotten; a run
// that names what is not there is told so before anything is started.
package runnerapi
