// Package daemon is the wiring: from the configuration to stores, gates,
// executor and runner. It is the only room that names a concrete store or
// executor, and [Open] reads from top to bottom.
package daemon
