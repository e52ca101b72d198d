// Package faults makes the faults that a machine can make, to the real binary,
// and looks at what is left with fsck: calls of the system that fail or at which
// the process is killed, one after the other, and a host that is killed again and
// again under load. It has tests alone.
//
// With TRACON_FAULTS=full the tests take every fault, and some hours; without it
// they take a part that is the same each time.
package faults
