//go:build !unix

// Package bare is an executor without a single wall, the control of the hostile
// suite. It needs a Unix.
package bare
