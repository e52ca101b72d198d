// Package ticket makes and checks tickets: proofs that a host's gates admitted a run,
// for a runner that asks for more than a key. A host signs one with a [Signer] for one
// run, one closure, everything that is asked for, and one runner; the runner redeems it
// with a [Verifier], once. Whoever has a stolen key alone can have nothing run.
//
// # Form
//
// A ticket is "tracon-ticket-1." and two parts of unpadded URL-safe base64 with a dot
// between them: what is signed, and the Ed25519 signature over "tracon/ticket/1\n" and
// it. What is signed is, each behind its length in bytes as a big-endian uint16: the
// runner's name, the tenant, the run's id; then the closure's SHA-256, the SHA-256 that
// [wire.Run.Commitment] has, the time of signing and that of its end, each in
// microseconds of Unix time as a big-endian int64, and 16 random bytes. Nothing else is
// a ticket, so that no two texts say the same.
package ticket
