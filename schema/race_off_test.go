//go:build !race

package schema

// raceFactor is how much longer things may take: the race detector slows all.
const raceFactor = 1
