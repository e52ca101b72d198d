// Package storetest is the contract of a store: what every room below
// package store must keep. A failure prints the rule that was broken.
//
// Call [Run] from the test of a store.
package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/store"
)

// A Setup says how to get at a store. With the optional fields nil, the rules
// that need them do not apply to the store: say so by leaving them out, not by
// functions that do nothing.
type Setup struct {
	// Open returns a new, empty store. Required. The suite closes it.
	Open func(t testing.TB) store.Store

	// Reopen closes s, which Open returned, and opens again what it kept. Nil: the
	// store keeps nothing beyond its end.
	Reopen func(t testing.TB, s store.Store) store.Store

	// Damage changes, behind the back of s, one byte of the content that is kept
	// under digest. Nil: nobody but the store reaches what it keeps.
	Damage func(t testing.TB, s store.Store, digest bundle.Digest)
}

// A rule is one thing that a store must keep.
type rule struct {
	name string
	text string // what must hold, printed with every failure
	run  func(k *kit)
}

// A kit is what the check of a rule works with: a store of its own.
type kit struct {
	*testing.T
	store store.Store
	log   *audit.Log
	setup Setup
	rule  string
}

// broken ends the check: the rule does not hold, as the words say.
func (k *kit) broken(format string, args ...any) {
	k.Helper()
	k.Fatalf("the rule is broken: %s\n\t"+format, append([]any{k.rule}, args...)...)
}

// must ends the check when err is not nil.
func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.broken("error: %v", err)
	}
}

// wants ends the check when err does not wrap want.
func (k *kit) wants(err, want error, format string, args ...any) {
	k.Helper()
	if !errors.Is(err, want) {
		k.broken(format+": got error %v, want %q", append(args, err, want)...)
	}
}

// Run checks every rule, each on a store of its own.
func Run(t *testing.T, s Setup) {
	t.Helper()
	if s.Open == nil {
		t.Fatal("storetest: Setup without Open")
	}
	for _, r := range rules() {
		if r.name == "reopen" && s.Reopen == nil || strings.HasSuffix(r.name, "damage") && s.Damage == nil {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			k := &kit{T: t, store: s.Open(t), setup: s, rule: r.text}
			k.log = audit.NewLog(k.store)
			t.Cleanup(func() { k.must(k.store.Close()) })
			r.run(k)
		})
	}
}

func rules() []rule {
	return []rule{
		{"log/order", "B7: the log keeps every entry once, in the order of its indexes, and adds up", logOrder},
		{"log/leaves", "B7: Leaves yields the leaves of one tenant, or of all, from an index on", logLeaves},
		{"log/concurrent", "B7: appends from many goroutines give one log without a gap", logConcurrent},
		{"log/cancelled", "R16: an append that failed is not in the log, and one that succeeded is", logCancelled},
		{"change/unsealed", "a change without its entry, or with one in another history, is not made", changeUnsealed},
		{"change/one", "a change and its entry stand together", changeOne},
		{"change/refused", "a change that is refused has no effect and no entry, even when it fails half-way", changeRefused},
		{"change/race", "of several changes that saw the same state, exactly one is made", changeRace},
		{"change/context", "no method does anything for a context that has ended; it returns the cause", contextEnded},
		{"grant/newest", "R9, case 45: for each Ref the newest grant counts, in force or not", grantNewest},
		{"grant/exact", "R9: names are compared by exact bytes, and a blank script names nothing", grantExact},
		{"grant/bad", "zero is closed: what cannot be a grant is not kept", grantBad},
		{"grant/whole", "a grant comes back as it was given", grantWhole},
		{"grant/revoke", "R9: a revocation holds, is made once, and keeps the grant's other fields", grantRevoke},
		{"grant/list", "grants are listed the newest first, by skill, within the limit", grantList},
		{"content/whole", "B11: a content comes back byte for byte as long as a grant names it, revoked or not", contentWhole},
		{"content/shared", "B11: a content that many grants pin is the same for each", contentShared},
		{"import/newest", "the newest version of a skill counts, and it is the one that came last", importNewest},
		{"import/deleted", "case 48: a deleted skill is not there, its history and its contents are, and it can be imported again", importDeleted},
		{"import/list", "versions are listed the newest first, within the limit; skills by name, those that are there", importList},
		{"import/bad", "zero is closed: what cannot be a version is not kept", importBad},
		{"import/whole", "a version comes back as it was given, with its content byte for byte", importWhole},
		{"import/shared", "B11: a content that many versions and grants name is the same for each", importShared},
		{"damage", "B1: bytes that were changed where they are kept are an error that says so, never served", contentDamaged},
		{"setting/host", "the host's settings come back as they were set, with a revision that counts the changes", settingHost},
		{"setting/policy", "a policy comes back as it was set, with a revision that counts the changes", settingPolicy},
		{"key/whole", "a key comes back as it was given, by its tenant and by its id", keyWhole},
		{"key/bad", "zero is closed: what cannot be a key is not kept", keyBad},
		{"key/list", "keys are listed the newest first, before a cursor, within the limit", keyList},
		{"key/replace", "a key that is replaced ends at its time and never later; one that is revoked stays so", keyReplace},
		{"key/use", "that a key was used is kept once a minute, and is no entry", keyUse},
		{"tenant/whole", "a tenant comes back as it was set, with a revision that counts the changes", tenantWhole},
		{"tenant/deleted", "a tenant that was deleted is given nothing, and what it has can be taken back", tenantDeleted},
		{"tenant/list", "tenants that were made are listed by name, behind a cursor, within the limit", tenantList},
		{"quota/bounds", "B10: what is kept for a tenant stays within its quota, and what makes less is never refused", quotaBounds},
		{"quota/race", "B10: a quota holds however many bring something at once", quotaRace},
		{"idempotency/once", "case 53: a key stands for one call until its time is over, and has its answer", idempotencyOnce},
		{"idempotency/window", "case 53: a key whose time is over stands for nothing, and is swept", idempotencyWindow},
		{"idempotency/race", "case 53: of several that bring one key at once, one begins", idempotencyRace},
		{"idempotency/left", "case 53: what a dead process began is found and settled, and what a living one began is left alone", idempotencyLeft},
		{"idempotency/bounds", "B10: answers are kept within bounds, and the call is done even so", idempotencyBounds},
		{"call/whole", "a record comes back as it was written, and is written once", callWhole},
		{"call/list", "records are listed the newest first, by skill, before a cursor, within the limit", callList},
		{"usage/sums", "what calls came to is counted once for each, by day and skill, and stays when their records go", usageSums},
		{"usage/list", "sums are listed the newest day first, then by skill, within days, behind a cursor, within the limit", usageList},
		{"tenants", "R9, B9: a tenant sees its own rows, and no other's, in both directions", tenantsApart},
		{"erase/calls", "records and details are erased by id, all or nothing, and the log stays", eraseCalls},
		{"erase/contents", "B11: a content is erased when nobody named it since it was looked at, and can be kept anew", eraseContents},
		{"survey/whole", "I6: a survey has every row of every tenant, as it was at one moment", surveyWhole},
		{"survey/damage", "I6: a survey names each content that was changed, and goes on", surveyDamaged},
		{"alias", "what goes in and what comes out are copies", aliases},
		{"closed", "a closed store refuses every call", closed},
		{"reopen", "B9: everything that was acknowledged is there when the store is opened again", reopened},
	}
}

// entry returns an entry of tenant's history that says what.
func entry(tenant string, kind audit.Kind, what string) audit.Entry {
	return audit.Entry{Tenant: tenant, Actor: "tester", Kind: kind, Subject: what}
}

// append writes one entry of tenant.
func (k *kit) append(tenant, what string) audit.Receipt {
	k.Helper()
	r, err := k.log.Append(k.Context(), entry(tenant, audit.Refusal, what))
	k.must(err)
	return r
}

// size returns the number of entries, after it has proved that the log adds up.
func (k *kit) size() uint64 {
	k.Helper()
	tree, err := k.log.Verify(k.Context(), nil)
	k.must(err)
	return tree.Size
}

// commit makes change with an entry of tenant.
func (k *kit) commit(tenant string, kind audit.Kind, change func(context.Context, audit.Pending) error) error {
	_, err := k.log.Commit(k.Context(), entry(tenant, kind, "change"), change)
	return err
}

// tenants of the suite. The second is what a careless pattern takes for the first.
const (
	alpha = "alpha"
	beta  = "Alpha"
)

const hostTenant = gate.HostTenant
