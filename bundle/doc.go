// Package bundle is the closure of a script: every file that the script can
// see, as immutable bytes, and the digest that a grant pins.
//
// Start with [New], which takes the files of a skill and answers with a
// [Bundle] or with the file that breaks a rule. [Bundle.Digest] is what a grant
// pins; [Diff] is what a reviewer reads when it has changed.
//
// # One file at a time
//
// A [Listing] is a bundle without its bytes, with the same digest. A [Lister] makes
// one of files that come one by one and go elsewhere; a [Content] is a Listing with
// a way to read each file, checked by [Read]. So who keeps, copies or compares a
// skill holds its largest file, and not their sum.
//
// # The manifest
//
// The digest is the SHA-256 of a manifest: the string "tracon/bundle/1", then
// for each file in the bytewise order of paths the length of its path, the
// path, its size and its SHA-256, then the length of the declaration and the
// declaration. Every number is a big-endian uint64. Two bundles have one
// manifest only when they are equal: see TestManifestIsInjective.
package bundle
