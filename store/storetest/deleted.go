package storetest

import (
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// tenantDeleted: whoever asked before the tenant was deleted and writes after it is
// refused by the row of the tenant (T15).
func tenantDeleted(k *kit) {
	c := content("a skill")
	ref := grant.Ref{Tenant: alpha, Skill: "s", AllScripts: true}
	for _, tenant := range []string{alpha, beta} {
		k.must(k.setTenant(tenantOf(tenant), 0))
	}
	k.must(k.addKey(keyOf(alpha, 1), ""))
	k.grant(id(1), ref, c)
	k.must(k.addVersion(versionOf(alpha, id(2), "s", c), c, ""))
	k.must(k.setPolicy(alpha, gate.Policy{Enabled: true}, 0))
	gone := tenantOf(alpha)
	gone.Off, gone.Deleted = true, at
	k.must(k.setTenant(gone, 1))
	n := k.size()
	for what, err := range map[string]error{
		"a key":             k.addKey(keyOf(alpha, 2), keyID(alpha, 1)),
		"a key for another": k.replaceKey(alpha, keyID(alpha, 1), keyOf(alpha, 3), at.Add(time.Hour)),
		"a grant":           k.addGrant(grantOf(id(3), ref, c), c, id(1)),
		"a version":         k.addVersion(versionOf(alpha, id(4), "s", c), c, id(2)),
		"a policy":          k.setPolicy(alpha, gate.Policy{Enabled: true, MaxArguments: 1}, 1),
	} {
		k.wants(err, admin.ErrDeleted, "%s of a tenant that was deleted", what)
	}
	if got := k.size(); got != n {
		k.broken("the log grew from %d to %d entries", n, got)
	}
	k.must(k.revokeKey(alpha, keyID(alpha, 1)))
	k.must(k.addVersion(admin.Version{Tenant: alpha, ID: id(5), Skill: "s", By: "tester", Imported: at, Deleted: true}, bundle.Bundle{}, id(2)))
	k.must(k.setPolicy(alpha, gate.Policy{}, 1))
	k.must(k.addKey(keyOf(beta, 1), ""))
	k.must(k.addGrant(grantOf(id(6), grant.Ref{Tenant: beta, Skill: "s", AllScripts: true}, c), c, ""))
}
