// Package calls is the list of system calls that a script may make, and the filter
// that the kernel holds it with. Every executor of this host whose scripts share
// the host's kernel has the same.
package calls
