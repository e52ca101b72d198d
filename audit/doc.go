// Package audit keeps the append-only record of what was admitted, refused,
// ended and changed, so that nobody can change it quietly. It knows nothing of
// scripts.
//
// A [Log] is made over a [Sink], which is a store. [Log.Append] writes one
// entry and answers with its [Receipt]. A change that must not happen without
// its entry goes through [Log.Commit]: the store makes the change and writes
// the entry in one transaction, or does neither. [Log.Verify] computes
// everything again from the leaves.
//
// # The leaf
//
// What is kept and hashed is the leaf: bytes, never a row of columns. Its form
// is frozen; testdata/leaf.golden holds vectors. A leaf is the string
// "tracon/leaf/1", the tenant's sequence number (from 1), the hash of the
// tenant's leaf before it (zeros for the first), then id, time (microseconds
// since 1970, as two's complement), tenant, actor, kind, subject and run, the
// count, the number of facts, and for each fact in the bytewise order of names
// its name and its value. Every number is a big-endian uint64; every text is
// its length and its bytes.
//
// Leaves are hashed as RFC 6962 says (SHA-256 with 0x00 before a leaf and 0x01
// before a node), and the tree over all leaves of all tenants has one root. The
// sequence and the previous hash inside the leaf let a tenant check its own
// history without seeing that of others.
//
// # Checkpoints and receipts
//
// What adds up by itself may have been computed anew. So a [SigningKey] signs
// a [Checkpoint], which others keep; [Log.VerifyClaims] compares the log with all
// of them. A [Proof] ties one entry to a checkpoint: its holder needs neither the
// log nor anybody's word to prove the entry. Both have the form that C2SP gives
// them, so that tools of others read them.
package audit
