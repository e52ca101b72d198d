// Package frame is what a host and the agent in a micro-VM say to each other: frames
// of a type, a length and that many bytes, over a serial port.
//
// The agent takes what the host says at its word. The host takes nothing of the
// agent's: a script may have taken the machine over, so every byte is a stranger's.
// Each frame has a type that is known and a length within bounds, each number has its
// range, and a tree of files is one: see [Tree].
package frame
