package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tracon-go/tracon/audit"
)

// all returns the leaves of tenant from an index on.
func (k *kit) all(tenant string, from uint64) []audit.Leaf {
	k.Helper()
	var leaves []audit.Leaf
	for leaf, err := range k.store.Leaves(k.Context(), tenant, from) {
		k.must(err)
		leaves = append(leaves, leaf)
	}
	return leaves
}

func logOrder(k *kit) {
	if f, err := k.store.Tip(k.Context()); err != nil || f.Size() != 0 {
		k.broken("a new store has a tip of %d entries (error %v)", f.Size(), err)
	}
	if n := k.size(); n != 0 {
		k.broken("a new store has %d entries", n)
	}
	var receipts []audit.Receipt
	names := []string{alpha, beta, hostTenant, alpha, alpha, beta, "@nobody"}
	for i := range 300 { // more than a page and a batch
		receipts = append(receipts, k.append(names[i%len(names)], fmt.Sprint("entry ", i)))
	}
	leaves := k.all("", 0)
	if len(leaves) != len(receipts) {
		k.broken("%d leaves came of %d appends", len(leaves), len(receipts))
	}
	seq := map[string]uint64{}
	for i, leaf := range leaves {
		e, at, err := audit.Decode(leaf.Bytes)
		k.must(err)
		seq[leaf.Tenant]++
		switch {
		case leaf.Index != uint64(i):
			k.broken("leaf %d has the index %d", i, leaf.Index)
		case leaf.Hash != receipts[i].Hash() || receipts[i].Index() != leaf.Index:
			k.broken("receipt %d is for another leaf", i)
		case e.Subject != fmt.Sprint("entry ", i) || e.Tenant != names[i%len(names)]:
			k.broken("leaf %d is that of %q, %q", i, e.Tenant, e.Subject)
		case leaf.Tenant != e.Tenant || leaf.Seq != at.Seq || at.Seq != seq[e.Tenant]:
			k.broken("leaf %d is number %d of %q beside the bytes, %d in them; want %d", i, leaf.Seq, leaf.Tenant, at.Seq, seq[e.Tenant])
		}
	}
	tip, err := k.store.Tip(k.Context())
	k.must(err)
	tree, err := k.log.Verify(k.Context(), nil)
	k.must(err)
	if tree.Size != uint64(len(receipts)) || tip.Size() != tree.Size || tip.Root() != tree.Root {
		k.broken("the tip has %d entries and the root %s, the leaves make %d and %s", tip.Size(), tip.Root(), tree.Size, tree.Root)
	}
}

func logLeaves(k *kit) {
	for i := range 600 {
		k.append([]string{alpha, beta, hostTenant}[i%3], "entry")
	}
	for _, tt := range []struct {
		tenant string
		from   uint64
		want   int
		first  uint64
	}{
		{"", 0, 600, 0}, {"", 1, 599, 1}, {"", 299, 301, 299}, {"", 599, 1, 599}, {"", 600, 0, 0}, {"", 1<<64 - 1, 0, 0},
		{alpha, 0, 200, 0}, {beta, 0, 200, 1}, {alpha, 1, 199, 3}, {alpha, 3, 199, 3}, {alpha, 597, 1, 597}, {alpha, 598, 0, 0},
		{alpha, 1 << 63, 0, 0}, {"nobody else", 0, 0, 0}, {"alph%", 0, 0, 0},
	} {
		leaves := k.all(tt.tenant, tt.from)
		if len(leaves) != tt.want || tt.want > 0 && leaves[0].Index != tt.first {
			k.broken("of %q from %d on come %d leaves, want %d beginning with %d", tt.tenant, tt.from, len(leaves), tt.want, tt.first)
		}
		for i, leaf := range leaves {
			if tt.tenant != "" && leaf.Tenant != tt.tenant {
				k.broken("of %q comes a leaf of %q", tt.tenant, leaf.Tenant)
			}
			if i > 0 && leaf.Index <= leaves[i-1].Index {
				k.broken("leaf %d comes behind leaf %d", leaf.Index, leaves[i-1].Index)
			}
		}
	}
	// A reader that stops, and one that writes while it reads, hold nothing up.
	for leaf, err := range k.store.Leaves(k.Context(), "", 0) {
		k.must(err)
		k.append(alpha, "while reading")
		if leaf.Index == 3 {
			break
		}
	}
	if n := k.size(); n != 604 {
		k.broken("the log has %d entries, want 604", n)
	}
}

func logConcurrent(k *kit) {
	const callers, each = 16, 20
	var wg sync.WaitGroup
	receipts := make([][]audit.Receipt, callers)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				tenant := []string{alpha, beta, hostTenant}[(c+i)%3]
				r, err := k.log.Append(k.Context(), entry(tenant, audit.Refusal, "append"))
				if err != nil {
					k.Errorf("append: %v", err)
				}
				receipts[c] = append(receipts[c], r)
				if i%5 == 0 {
					// A change of another kind, with a conflict now and then.
					_ = k.setPolicy(tenant, policy(), int64(i/5))
				}
				for _, err := range k.store.Leaves(k.Context(), tenant, 0) {
					if err != nil {
						k.Errorf("leaves: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := k.size()
	seen := map[uint64]bool{}
	leaves := k.all("", 0)
	for _, list := range receipts {
		for i, r := range list {
			if !r.Valid() || seen[r.Index()] || leaves[r.Index()].Hash != r.Hash() {
				k.broken("a receipt for entry %d is invalid, stands twice, or is for other bytes", r.Index())
			}
			if i > 0 && r.Index() <= list[i-1].Index() {
				k.broken("one caller's entries went from %d to %d", list[i-1].Index(), r.Index())
			}
			seen[r.Index()] = true
		}
	}
	if len(seen) != callers*each || n < callers*each || uint64(len(leaves)) != n {
		k.broken("%d receipts for %d appends, in a log of %d entries and %d leaves", len(seen), callers*each, n, len(leaves))
	}
}

func logCancelled(k *kit) {
	var mu sync.Mutex
	acked, failed := map[string]bool{}, map[string]bool{}
	var wg sync.WaitGroup
	for c := range 24 {
		wg.Go(func() {
			for i := range 12 {
				ctx, cancel := context.WithTimeoutCause(k.Context(), time.Duration((c*7+i*13)%40)*50*time.Microsecond, errGaveUp)
				e := entry(alpha, audit.Refusal, fmt.Sprint(c, " ", i))
				_, err := k.log.Append(ctx, e)
				cancel()
				mu.Lock()
				if err == nil {
					acked[e.Subject] = true
				} else {
					failed[e.Subject] = true
					k.wants(err, errGaveUp, "an append whose caller gave up")
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	k.size()
	for leaf, err := range k.log.Entries(k.Context(), alpha, 0) {
		k.must(err)
		s := leaf.Entry.Subject
		if failed[s] {
			k.broken("the append of %q returned an error, and it is in the log", s)
		}
		delete(acked, s)
	}
	if len(acked) > 0 {
		k.broken("%d appends returned no error and are not in the log", len(acked))
	}
}

// changes returns every changing method as a call that succeeds on a store that
// has been given grant id(1) of alpha, with what reads its effect.
func (k *kit) changes() []change { return append(k.changesOfRows(), k.changesOfAccess()...) }

func (k *kit) changesOfRows() []change {
	ctx := k.Context()
	c, imported := content("changes"), content("imported")
	ref := script(alpha, "scripts/changes.py")
	return []change{
		{"Append", alpha, func(ctx context.Context, p audit.Pending) error { return k.store.Append(ctx, p) },
			func() any { return nil }},
		{"SetHost", hostTenant, func(ctx context.Context, p audit.Pending) error { return k.store.SetHost(ctx, host(), 0, p) },
			func() any { h, n, err := k.store.HostAt(ctx); return []any{h, n, err} }},
		{"SetPolicy", alpha, func(ctx context.Context, p audit.Pending) error { return k.store.SetPolicy(ctx, alpha, policy(), 0, p) },
			func() any { h, n, err := k.store.PolicyAt(ctx, alpha); return []any{h, n, err} }},
		{"AddGrant", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.AddGrant(ctx, grantOf(id(50), ref, c), c, "", p)
		}, func() any {
			g, err := k.store.Grants(ctx, alpha, anyGrant)
			b, _ := k.store.Content(ctx, alpha, c.Digest())
			return []any{g, err, b.Digest()}
		}},
		{"RevokeGrant", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.RevokeGrant(ctx, alpha, id(1), at, "revoker", p)
		}, func() any { g, err := k.store.GrantByID(ctx, alpha, id(1)); return []any{g, err} }},
		{"AddVersion", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.AddVersion(ctx, versionOf(alpha, id(55), "imported", imported), imported, "", p)
		}, func() any {
			list, err := k.store.Skills(ctx, alpha)
			history, err2 := k.store.Versions(ctx, alpha, "imported", 0)
			b, _ := k.store.Content(ctx, alpha, imported.Digest())
			return []any{list, history, errors.Join(err, err2), b.Digest()}
		}},
		{"AddCall", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.AddCall(ctx, record(alpha, id(60)), p)
		}, func() any { r, err := k.store.Calls(ctx, alpha, anyCall); return []any{r, err} }},
	}
}

type change struct {
	name   string
	tenant string
	do     func(context.Context, audit.Pending) error
	state  func() any
}

// kinds of entries do not matter to a store.
func (k *kit) with(c change) (audit.Receipt, error) {
	return k.log.Commit(k.Context(), entry(c.tenant, audit.Ending, c.name), c.do)
}

// lastIs ends the check when the last of n leaves is not that of receipt r.
func (k *kit) lastIs(r audit.Receipt, n uint64) {
	k.Helper()
	leaves := k.all("", n-1)
	if len(leaves) != 1 || leaves[0].Hash != r.Hash() || r.Index() != n-1 {
		k.broken("the change's entry is not the last of %d leaves", n)
	}
}
