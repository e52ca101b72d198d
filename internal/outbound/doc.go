// Package outbound makes connections to peers whose address a configuration names, and
// what the name resolves to somebody else: identity providers, remote runners. A [Reach]
// says where they may go.
//
// Every address is looked at when a connection to it is about to be made, after the name
// was resolved, so that a name that means another address now helps nobody. Addresses of
// this machine and of private networks need a word of the configuration; those that are
// nobody's, the link's own and those where clouds keep credentials are never connected to.
// There is no proxy of the environment, no redirect, https alone (but on this machine),
// and answers are bounded.
package outbound
