package audit

import (
	"fmt"
	"iter"
)

// A History is what [VerifyHistory] found in order.
type History struct {
	Entries uint64
	Tenants map[string]Link // the last entry of each
	Proved  uint64          // entries that a proof covers: it is theirs, or of a later one of their tenant
}

// VerifyHistory checks entries that were taken out of a log, without the log: that each
// leaf decodes, has the hash and the columns that are told beside it, and follows its
// tenant's leaf before it, from that tenant's first. So a tenant can check the whole of
// its own history and needs nothing of anybody else's. Leaves come by rising index.
//
// What adds up by itself may be made up or cut short. Proofs, which [OpenProof] has
// checked, pin it to what was signed: the entry of each must stand where the proof says,
// and by the chain of hashes so do all entries of its tenant before it.
//
// It reads the leaves once, and keeps a few bytes for each tenant and proof.
//
// # Errors
//
// A *BrokenError for the first leaf that is not in order; ErrTruncated where the entry of
// a proof comes after the last one of its tenant; the error that leaves yields.
func VerifyHistory(leaves iter.Seq2[Leaf, error], proofs ...Proof) (History, error) {
	type place struct {
		tenant string
		seq    uint64
	}
	proved := map[place]Proof{}
	covered := map[string]uint64{} // how far proofs reach
	for _, p := range proofs {
		e, at, err := p.Entry()
		if err != nil {
			return History{}, fmt.Errorf("%w: %w", ErrProof, err)
		}
		if other, ok := proved[place{e.Tenant, at.Seq}]; ok && LeafHash(other.Leaf) != LeafHash(p.Leaf) {
			return History{}, fmt.Errorf("%w: two proofs tell of different entries %d of tenant %s", ErrAltered, at.Seq, e.Tenant)
		}
		proved[place{e.Tenant, at.Seq}] = p
		covered[e.Tenant] = max(covered[e.Tenant], at.Seq)
	}
	h := History{Tenants: map[string]Link{}}
	next := uint64(0) // the least index that the next leaf can have
	for leaf, err := range leaves {
		if err != nil {
			return History{}, err
		}
		e, at, err := Decode(leaf.Bytes)
		hash := LeafHash(leaf.Bytes)
		last := h.Tenants[e.Tenant]
		p, known := proved[place{e.Tenant, at.Seq}]
		switch {
		case err != nil:
			err = broken(leaf.Index, ErrAltered, "%w", err)
		case leaf.Index < next:
			err = broken(leaf.Index, ErrAltered, "it comes after entry %d", next-1)
		case hash != leaf.Hash:
			err = broken(leaf.Index, ErrAltered, "its hash is not the one told beside it: its bytes were changed")
		case leaf.Tenant != e.Tenant || leaf.Seq != at.Seq:
			err = broken(leaf.Index, ErrAltered, "what is told beside it is another tenant or sequence number")
		case at.Seq != last.Seq+1:
			err = broken(leaf.Index, ErrMissing, "the sequence of tenant %s goes from %d to %d", e.Tenant, last.Seq, at.Seq)
		case at.Prev != last.Prev:
			err = broken(leaf.Index, ErrAltered, "it does not follow the entry before it of tenant %s", e.Tenant)
		case known && (LeafHash(p.Leaf) != hash || p.Index != leaf.Index):
			err = broken(leaf.Index, ErrAltered, "a proof tells of another entry %d of tenant %s", at.Seq, e.Tenant)
		}
		if err != nil {
			return History{}, err
		}
		h.Tenants[e.Tenant] = Link{at.Seq, hash}
		h.Entries++
		next = leaf.Index + 1
		if at.Seq <= covered[e.Tenant] {
			h.Proved++
		}
	}
	return h, h.reach(proofs)
}

// reach says which proof tells of an entry that comes later than h, or nil.
func (h History) reach(proofs []Proof) error {
	for _, p := range proofs {
		e, at, err := p.Entry()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProof, err)
		}
		if last := h.Tenants[e.Tenant].Seq; at.Seq > last {
			return broken(p.Index, ErrTruncated, "a proof tells of entry %d of tenant %s, and the last one here is %d", at.Seq, e.Tenant, last)
		}
	}
	return nil
}
