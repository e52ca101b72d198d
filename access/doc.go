// Package access says who asks and what that one may do: tenants, principals with
// their roles, and API keys. It knows nothing of HTTP; a door makes a [Principal] of
// a credential and asks it before it does anything.
//
// [Authenticate] makes a Principal of the text of a key. A door with credentials of
// its own makes the Principal itself and asks [Admit] whether its tenant is there and
// on. [Check] says what a Principal may do. A [Book] is where an operator's changes
// of keys and tenants go; package admin makes them.
//
// # Keys
//
// The text of a key is "tracon_", its public id, "_", 256 random bits, and a checksum
// by which scanners and [ParseSecret] know it without asking anybody. Of the random
// bits a SHA-256 is kept, with the id in it; nobody can have the text a second time.
package access
