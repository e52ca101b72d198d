package retention_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/store/sqlite"
	"github.com/tracon-go/tracon/toolcall"
)

const day = 24 * time.Hour

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// idAt returns an id of the time t.
func idAt(t time.Time, n int) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012d", ms>>16, ms&0xffff, n)
}

type house struct {
	*testing.T
	store store.Store
	log   *audit.Log
}

func each(t *testing.T, test func(h house)) {
	for name, open := range map[string]func(t *testing.T) (store.Store, error){
		"memory": func(*testing.T) (store.Store, error) { return memstore.New(), nil },
		"sqlite": func(t *testing.T) (store.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tracon.db"), sqlite.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
			test(house{t, st, audit.NewLog(st)})
		})
	}
}

func (h house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// call writes the admission, the ending and the record of a call that ended so
// long ago, and returns its id.
func (h house) call(tenant string, n int, ago time.Duration) string {
	h.Helper()
	ended := now.Add(-ago)
	id := idAt(ended.Add(-time.Second), n)
	return h.callOf(tenant, id, ended)
}

// callOf is call with an id of the caller's choice.
func (h house) callOf(tenant, id string, ended time.Time) string {
	h.Helper()
	admission, err := h.log.Append(h.Context(), audit.Entry{Tenant: tenant, Kind: audit.Admission, Run: id, Time: ended.Add(-time.Second)})
	h.must(err)
	rec := toolcall.Record{ID: id, Tenant: tenant, Skill: "s", Ended: ended, Ending: "exited", Arguments: "secret", ArgumentsSalt: []byte("salt"),
		Notes: []string{"note"}, AdmissionIndex: admission.Index()}
	_, err = h.log.Commit(h.Context(), audit.Entry{Tenant: tenant, Kind: audit.Ending, Run: id, Time: ended, Facts: audit.Facts("ending", "exited")},
		func(ctx context.Context, p audit.Pending) error { return h.store.AddCall(ctx, rec, p) })
	h.must(err)
	return id
}

// sound ends the test when fsck finds something.
func (h house) sound() {
	h.Helper()
	_, err := fsck.Check(h.Context(), fsck.Config{Store: h.store, Log: h.log}, func(f fsck.Finding) { h.Errorf("fsck finds %+v", f) })
	h.must(err)
}

// Records and details go when their time is over, those of each tenant with an
// entry in its own history; the log stays whole; nothing goes by a preview.
func TestCalls(t *testing.T) {
	each(t, func(h house) {
		for n := range 300 { // more than a page
			h.call("acme", n, 100*day)
		}
		old, middle, fresh := h.call("umbrella", 1, 100*day), h.call("umbrella", 2, 40*day), h.call("umbrella", 3, day)
		tip, err := h.store.Tip(h.Context())
		h.must(err)
		rules := retention.Rules{Calls: 90 * day, Details: 30 * day}
		want := retention.Erasure{Calls: 301, Details: 1}
		for range 2 {
			if got, err := retention.Preview(h.Context(), h.store, rules, now); err != nil || got != want {
				h.Fatalf("the preview says %+v, error %v; want %+v", got, err, want)
			}
		}
		if got, err := retention.Apply(h.Context(), h.store, h.log, "op", rules, now); err != nil || got != want {
			h.Fatalf("it erased %+v, error %v; want %+v", got, err, want)
		}
		entries := map[string]string{}
		for leaf, err := range h.log.Entries(h.Context(), "", tip.Size()) {
			h.must(err)
			e := leaf.Entry
			if e.Kind != audit.Keeping || e.Subject != retention.Subject || e.Actor != "op" {
				h.Errorf("the entry is %+v", e)
			}
			entries[e.Tenant] += fmt.Sprint(e.Fact("records"), "/", e.Fact("details"), " ")
		}
		if entries["acme"] != "256/ 44/ " || entries["umbrella"] != "1/1 " {
			h.Errorf("the entries say %v", entries)
		}
		if list, err := h.store.Calls(h.Context(), "acme", toolcall.Filter{}); err != nil || len(list) != 0 {
			h.Errorf("of the old records %d are left, error %v", len(list), err)
		}
		if _, err := h.store.Call(h.Context(), "umbrella", old); !errors.Is(err, toolcall.ErrNotFound) {
			h.Errorf("the old record: %v", err)
		}
		for id, details := range map[string]bool{middle: false, fresh: true} {
			if r, err := h.store.Call(h.Context(), "umbrella", id); err != nil || r.HasDetails() != details || r.Ending != "exited" {
				h.Errorf("the record %+v, error %v; want details %v", r, err, details)
			}
		}
		if got, err := retention.Apply(h.Context(), h.store, h.log, "op", rules, now); err != nil || got != (retention.Erasure{}) {
			h.Errorf("a second time it erased %+v, error %v", got, err)
		}
		h.sound()
	})
}

// A call's id is its caller's choice, and so is the time in it: a record goes by the
// time of its ending, and stays by it.
func TestCallsGoByTheirEnding(t *testing.T) {
	each(t, func(h house) {
		future := h.callOf("acme", idAt(now.Add(9999*day), 1), now.Add(-100*day))
		past := h.callOf("acme", idAt(now.Add(-9999*day), 2), now.Add(-day))
		rules := retention.Rules{Calls: 90 * day}
		if got, err := retention.Apply(h.Context(), h.store, h.log, "op", rules, now); err != nil || got != (retention.Erasure{Calls: 1}) {
			h.Errorf("it erased %+v, error %v; want one record", got, err)
		}
		if _, err := h.store.Call(h.Context(), "acme", future); !errors.Is(err, toolcall.ErrNotFound) {
			h.Errorf("a record whose id tells of the future: %v", err)
		}
		if _, err := h.store.Call(h.Context(), "acme", past); err != nil {
			h.Errorf("a record whose id tells of the past: %v", err)
		}
		h.sound()
	})
}

// I6: a record that somebody deleted is not one that retention took away: the entry
// must cover it, by the time of the call and by the number of records.
func TestDeletedIsNotErased(t *testing.T) {
	each(t, func(h house) {
		st, erases := h.store.(store.Eraser)
		if !erases {
			h.Fatal("it erases nothing")
		}
		// What somebody deletes around Tracon leaves no entry that says so.
		deleted := func(id string) {
			_, err := h.log.Commit(h.Context(), audit.Entry{Tenant: "acme", Kind: audit.Keeping, Subject: "another"}, func(ctx context.Context, p audit.Pending) error {
				return st.EraseCalls(ctx, "acme", []string{id}, nil, p)
			})
			h.must(err)
		}
		findings := func() (found []string) {
			_, err := fsck.Check(h.Context(), fsck.Config{Store: h.store, Log: h.log}, func(f fsck.Finding) { found = append(found, f.Invariant+" "+f.What) })
			h.must(err)
			return found
		}
		for n := range 3 {
			h.call("acme", n, 100*day)
		}
		old, young := h.call("acme", 4, 100*day), h.call("acme", 5, day)
		deleted(old)
		if got := findings(); len(got) != 1 || !strings.Contains(got[0], "the record of call "+old+" is gone") {
			h.Errorf("before anything was erased: %q", got)
		}
		_, err := retention.Apply(h.Context(), h.store, h.log, "op", retention.Rules{Calls: 90 * day}, now)
		h.must(err)
		if got := findings(); len(got) != 1 || !strings.Contains(got[0], "4 records of calls are gone, and the log tells of 3") {
			h.Errorf("one that was as old as those erased: %q", got)
		}
		deleted(young)
		if got := findings(); len(got) != 2 || !strings.Contains(got[0], "the record of call "+young+" is gone") || !strings.Contains(got[1], "5 records") {
			h.Errorf("one that was not old enough: %q", got)
		}
	})
}

// B11: a content stays while a grant in force pins it or an imported skill is of
// it, in whatever tenant, and for the time of the rule after that.
func TestContents(t *testing.T) {
	each(t, func(h house) {
		contents := map[string]bundle.Bundle{}
		content := func(name string) bundle.Bundle {
			b, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte(name)}, {Path: "shared", Data: []byte("the same in all")}}, nil, bundle.Limits{})
			h.must(err)
			contents[name] = b
			return b
		}
		n := 0
		grantIt := func(tenant, script, name string, ago time.Duration, change func(*grant.Grant)) grant.Grant {
			n++
			b := content(name)
			ref := grant.Ref{Tenant: tenant, Skill: "s", Script: script}
			g := grant.Grant{ID: idAt(now, n), Ref: ref, Pin: b.Digest(), GrantedBy: "op", Granted: now.Add(-ago), MinTier: grant.Process}
			if change != nil {
				change(&g)
			}
			last, err := h.store.Grant(h.Context(), ref)
			if err != nil && !errors.Is(err, grant.ErrNotFound) {
				h.Fatal(err)
			}
			facts := []string{"grant", g.ID, "digest", g.Pin.String(), "tier", "process"}
			if !g.Expires.IsZero() {
				facts = append(facts, "expires", g.Expires.Format(time.RFC3339Nano))
			}
			_, err = h.log.Commit(h.Context(), audit.Entry{Tenant: tenant, Actor: "op", Kind: audit.Granted, Subject: ref.String(), Facts: audit.Facts(facts...)},
				func(ctx context.Context, p audit.Pending) error { return h.store.AddGrant(ctx, g, b, last.ID, p) })
			h.must(err)
			return g
		}
		revoke := func(g grant.Grant, ago time.Duration) {
			_, err := h.log.Commit(h.Context(), audit.Entry{Tenant: g.Ref.Tenant, Actor: "op", Kind: audit.Revoked, Subject: g.Ref.String(),
				Facts: audit.Facts("grant", g.ID, "digest", g.Pin.String())}, func(ctx context.Context, p audit.Pending) error {
				return h.store.RevokeGrant(ctx, g.Ref.Tenant, g.ID, now.Add(-ago), "op", p)
			})
			h.must(err)
		}
		importIt := func(tenant, skill, name string, ago time.Duration) {
			n++
			b, kind := bundle.Bundle{}, audit.Deleted
			v := admin.Version{ID: idAt(now, n), Tenant: tenant, Skill: skill, By: "op", Imported: now.Add(-ago), Deleted: name == ""}
			facts := []string{"version", v.ID}
			if name != "" {
				b, kind = content(name), audit.Imported
				v.Digest = b.Digest()
				facts = append(facts, "digest", v.Digest.String())
			}
			history, err := h.store.Versions(h.Context(), tenant, skill, 1)
			h.must(err)
			after := ""
			if len(history) > 0 {
				after = history[0].ID
			}
			_, err = h.log.Commit(h.Context(), audit.Entry{Tenant: tenant, Actor: "op", Kind: kind, Subject: skill, Facts: audit.Facts(facts...)},
				func(ctx context.Context, p audit.Pending) error { return h.store.AddVersion(ctx, v, b, after, p) })
			h.must(err)
		}
		grantIt("acme", "a", "in force", 900*day, nil)
		grantIt("acme", "b", "expired long ago", 900*day, func(g *grant.Grant) { g.Expires = now.Add(-100 * day) })
		grantIt("acme", "c", "expired just now", 900*day, func(g *grant.Grant) { g.Expires = now.Add(-day) })
		revoke(grantIt("acme", "d", "revoked long ago", 900*day, nil), 100*day)
		revoke(grantIt("acme", "e", "revoked just now", 900*day, nil), day)
		grantIt("acme", "f", "replaced long ago", 900*day, nil)
		grantIt("acme", "f", "in force", 100*day, nil)
		grantIt("acme", "g", "replaced just now", 900*day, nil)
		grantIt("acme", "g", "in force", day, nil)
		revoke(grantIt("acme", "h", "of another tenant too", 900*day, nil), 100*day)
		grantIt("umbrella", "h", "of another tenant too", 900*day, nil)
		importIt("acme", "one", "the version before, long ago", 900*day)
		importIt("acme", "one", "the version of now", 100*day)
		importIt("acme", "two", "deleted long ago", 900*day)
		importIt("acme", "two", "", 100*day)
		importIt("acme", "three", "deleted just now", 900*day)
		importIt("acme", "three", "", day)
		h.sound()

		rules := retention.Rules{Contents: 90 * day}
		want := retention.Erasure{Contents: 5}
		if got, err := retention.Preview(h.Context(), h.store, rules, now); err != nil || got != want {
			h.Fatalf("the preview says %+v, error %v; want %+v", got, err, want)
		}
		for name, b := range contents {
			if _, err := h.store.Content(h.Context(), "acme", b.Digest()); err != nil {
				h.Errorf("after a preview %q: %v", name, err)
			}
		}
		if got, err := retention.Apply(h.Context(), h.store, h.log, "op", rules, now); err != nil || got != want {
			h.Fatalf("it erased %+v, error %v; want %+v", got, err, want)
		}
		for name, b := range contents {
			got, err := h.store.Content(h.Context(), "acme", b.Digest())
			if gone := strings.Contains(name, "long ago"); gone != errors.Is(err, grant.ErrNotFound) || !gone && (err != nil || got.Digest() != b.Digest()) {
				h.Errorf("%q: %v", name, err)
			}
		}
		h.sound()
		// What is granted again is there again.
		grantIt("acme", "d", "revoked long ago", 0, nil)
		if _, err := h.store.Content(h.Context(), "acme", contents["revoked long ago"].Digest()); err != nil {
			h.Errorf("granted again: %v", err)
		}
		h.sound()
	})
}

// Zero keeps for ever, and a rule that could take away what a run needs is refused.
func TestRules(t *testing.T) {
	each(t, func(h house) {
		h.call("acme", 1, 9999*day)
		if got, err := retention.Apply(h.Context(), h.store, h.log, "op", retention.Rules{}, now); err != nil || got != (retention.Erasure{}) {
			h.Errorf("without rules it erased %+v, error %v", got, err)
		}
		for _, r := range []retention.Rules{{Contents: time.Hour}, {Contents: -1}, {Calls: -1}, {Details: -1}, {Contents: retention.LeastContents - 1}} {
			if _, err := retention.Apply(h.Context(), h.store, h.log, "op", r, now); !errors.Is(err, retention.ErrRules) {
				h.Errorf("%+v: %v, want %q", r, err, retention.ErrRules)
			}
		}
	})
}
