// Package hostcase is what the tests of the executors of this host ask of it: which
// interpreters it has, and what runs have left behind.
package hostcase
