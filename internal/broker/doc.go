// Package broker is a NATS server within this process, for a fleet that needs no
// other. It is the only importer of the server's library.
//
// Each pool is an account: no credential of one pool hears or says anything in
// another. Within a pool, a runner hears what is offered to all and what is told to
// itself, and talks to the control plane alone. Nothing is stored: JetStream is off.
package broker
