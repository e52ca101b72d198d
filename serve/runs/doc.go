// Package runs holds the runs of this process for its doors: a door starts a call
// here, waits for it or lets it go on by itself, shows what it writes while it
// runs, and cancels it. What came of a run is kept for a while after its end,
// within bounds of time, number and bytes, for all and for each tenant; what is
// older, or ran in another process, is told by the call's record and the log.
//
// Begin with [New]. Everything belongs to a tenant: the run of another one is not
// found. Nothing here decides whether a call may run; the runner's gates do.
package runs
