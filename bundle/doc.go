// Package bundle is the closure of a script: every file that the script can
// see, as immutable bytes, and the digest that a grant pins.
//
// Start with [New], which takes the files of a skill and answers with a
// [Bundle] or with the file that breaks a rule. [Bundle.Digest] is what a grant
// pins; [Diff] is what a reviewer reads when it has changed.
//
// # The manifest
//
// The digest is the SHA-256 of a manifest: the string "tracon/bundle/1", then
// for each file in the bytewise order of paths the length of its path, the
// path, its size and its SHA-256, then the length of the declaration and the
// declaration. Every number is a big-endian uint64. Two bundles have one
// manifest only when they are equal: see TestManifestIsInjective.
package bundle
