// Package client is the typed client of the management API, and the home of its wire
// types: the server imports them, so that the two cannot differ. It imports nothing of
// the server, and of this module no more than the digests of package bundle.
//
// Make a [Client] with [New]. Every method answers with a value or an error; what the
// server refused is a [*Problem], whose Code is one of a closed set.
package client
