// Package tracon runs the scripts of agent skills, and only when every gate
// says yes: for a known script, a grant in force, the very bytes that were
// granted, an interpreter on the allow-list, arguments that fit, and an entry
// in the log that stands before anything starts.
//
// A [Runner] is made over a [gate.Gate] and takes one call at a time from a
// host: [Runner.Run]. What it starts is up to an [executor.Executor]. See
// examples/embed for a whole host in twenty lines.
package tracon
