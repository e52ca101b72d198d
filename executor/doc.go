// Package executor is the seam: what an implementer of an executor imports.
//
// An [Executor] starts a script that has already passed every gate and says how
// it ended. It decides nothing and writes no record. Look at executor/process
// for a whole one, and prove yours with executor/executortest.
package executor
