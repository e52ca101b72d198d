// Package toolcall keeps what came of each admitted call: the record that an
// operator lists and that usage is counted from. It holds no output and, unless
// the tenant's policy says so, no arguments.
package toolcall
