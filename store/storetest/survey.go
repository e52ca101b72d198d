package storetest

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/store"
)

// surveyed is what a survey says of one tenant.
type surveyed struct {
	Policy                    any
	Tenant                    any
	Keys                      []access.Key
	Grants, Versions, Records []string // by id
	Leaves                    int
	End                       audit.Link
}

func (k *kit) surveyed(v store.Survey, tenant string) (s surveyed) {
	k.Helper()
	p, revision, err := v.PolicyAt(k.Context(), tenant)
	k.must(err)
	s.Policy = []any{p, revision}
	made, revision, err := v.TenantAt(k.Context(), tenant)
	k.must(err)
	s.Tenant = []any{made.Name, made.Off, revision}
	for key, err := range v.Keys(k.Context(), tenant) {
		k.must(err)
		s.Keys = append(s.Keys, key)
	}
	for g, err := range v.Grants(k.Context(), tenant) {
		k.must(err)
		if g.Ref.Tenant != tenant {
			k.broken("the survey of %q has a grant of %q", tenant, g.Ref.Tenant)
		}
		s.Grants = append(s.Grants, g.ID)
	}
	for version, err := range v.Versions(k.Context(), tenant) {
		k.must(err)
		if version.Tenant != tenant {
			k.broken("the survey of %q has a version of %q", tenant, version.Tenant)
		}
		s.Versions = append(s.Versions, version.ID)
	}
	for r, err := range v.Records(k.Context(), tenant) {
		k.must(err)
		if r.Tenant != tenant {
			k.broken("the survey of %q has a record of %q", tenant, r.Tenant)
		}
		s.Records = append(s.Records, r.ID)
		same, err := v.Record(k.Context(), tenant, r.ID)
		k.must(err)
		k.same("the record by its id", same, r)
	}
	for leaf, err := range v.Leaves(k.Context(), tenant, 0) {
		k.must(err)
		s.Leaves++
		s.End = audit.Link{Seq: leaf.Seq, Prev: leaf.Hash}
	}
	end, err := v.HistoryEnd(k.Context(), tenant)
	k.must(err)
	if end != s.End {
		k.broken("the history of %q ends at %v, and its last leaf is %v", tenant, end, s.End)
	}
	return s
}

func surveyWhole(k *kit) {
	k.populate(alpha, true)
	k.populate(beta, false)
	k.must(k.setHost(host(), 0))
	k.must(k.revoke(alpha, id(2)))
	k.must(k.addVersion(versionOf(alpha, id(1)+"z", "gone", content("gone")), content("gone"), ""))
	k.must(k.addVersion(deletionOf(alpha, id(0), "gone"), bundle.Bundle{}, id(1)+"z"))
	k.must(k.addKey(keyOf("", 1), ""))
	k.must(k.setTenant(tenantOf("row alone"), 0))
	for i := range 600 { // more than two pages
		k.must(k.addCall(record(beta, id(2000-i))))
	}
	v, err := k.store.Survey(k.Context())
	k.must(err)
	defer func() { k.must(v.Close()) }()

	// What comes later is not in it.
	k.populate("later", true)
	k.must(k.setHost(host(), 1))
	k.must(k.revoke(beta, id(1)))
	k.must(k.revokeKey(alpha, keyID(alpha, 1)))
	k.must(k.revokeKey("", keyID("", 1)))
	k.must(k.setTenant(tenantOf(alpha), 1))

	tenants, err := v.Tenants(k.Context())
	k.must(err)
	want := []string{hostTenant, alpha, beta, "row alone"}
	slices.Sort(want)
	k.same("the tenants", tenants, want)
	h, revision, err := v.HostAt(k.Context())
	k.must(err)
	k.same("the host's settings", []any{h, revision}, []any{host(), int64(1)})

	a := k.surveyed(v, alpha)
	k.same("the tenant", a.Tenant, []any{alpha, false, int64(1)})
	k.same("the keys, in the order of their coming", a.Keys, []access.Key{keptKey(keyOf(alpha, 1)), keptKey(keyOf(alpha, 2))})
	platform := slices.Collect(ignore(v.Keys(k.Context(), "")))
	k.same("the platform's keys", platform, []access.Key{keptKey(keyOf("", 1))})
	k.same("the grants, in the order of their coming", a.Grants, []string{id(1), id(2)})
	k.same("the versions, in the order of their coming", a.Versions, []string{id(1), id(2), id(1) + "z", id(0)})
	k.same("the records", a.Records, []string{id(1), id(2)})
	b := k.surveyed(v, beta)
	k.same("the grants of the other", b.Grants, []string{id(1), id(4)})
	if len(b.Records) != 602 || !slices.IsSorted(b.Records) {
		k.broken("of 602 records the survey has %d, or not in the order of their ids", len(b.Records))
	}
	for g, err := range v.Grants(k.Context(), beta) {
		k.must(err)
		if !g.Revoked.IsZero() {
			k.broken("a grant is revoked that was not when the survey began")
		}
	}
	tip, err := v.Tip(k.Context())
	k.must(err)
	if n := 3 + a.Leaves + b.Leaves; tip.Size() != uint64(n) {
		k.broken("the tip is that of %d leaves, and there are %d", tip.Size(), n)
	}
	var digests []bundle.Digest
	for d, err := range v.Contents(k.Context()) {
		k.must(err)
		digests = append(digests, d)
	}
	named := []bundle.Digest{content("gone").Digest()}
	for _, tenant := range []string{alpha, beta} {
		named = append(named, bare(tenant+".py").Digest(), bare(tenant+".md").Digest())
	}
	slices.SortFunc(named, func(a, b bundle.Digest) int { return bytes.Compare(a[:], b[:]) })
	k.same("the contents", digests, named)
	digests = nil
	for d, err := range v.Digests(k.Context()) {
		k.must(err)
		digests = append(digests, d)
	}
	k.same("the digests", digests, named)
	for text, err := range v.Flaws(k.Context()) {
		k.broken("a sound store has the flaw %q, error %v", text, err)
	}
	k.must(v.Close())
	k.must(v.Close())
}

// surveyDamaged: a content that was changed is told, and those behind it too.
func surveyDamaged(k *kit) {
	for i := range 5 {
		c := content(string(rune('a' + i)))
		k.must(k.addGrant(grantOf(id(i), script(alpha, string(rune('a'+i))), c), c, ""))
	}
	k.setup.Damage(k, k.store, content("a").Digest())
	v, err := k.store.Survey(k.Context())
	k.must(err)
	defer func() { k.must(v.Close()) }()
	read, damaged := count(v.Contents(k.Context()), store.ErrCorrupt)
	// The file is the same in all five.
	if read != 5 || damaged != 5 {
		k.broken("of 5 contents that share a changed file the survey has read %d, and found %d damaged", read, damaged)
	}
}

// ignore yields the values alone: an error's is the zero one, which nobody wants.
func ignore[T any](values iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range values {
			if !yield(v) {
				return
			}
		}
	}
}

func count[T any](values iter.Seq2[T, error], want error) (all, failed int) {
	for _, err := range values {
		all++
		if err != nil && errors.Is(err, want) {
			failed++
		}
	}
	return all, failed
}
