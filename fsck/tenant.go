package fsck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/toolcall"
)

// A history is one tenant's entries on their way past its rows.
type history struct {
	*checker
	name     string
	grants   *lane[grant.Grant]
	versions *lane[admin.Version]
	revoked  map[string]grant.Grant // rows that are revoked, of which the entry did not come yet
	open     map[string]*run        // by the id of the call
	policy   setting
	host     setting
	runtimes map[string]bundle.Digest // of the host, as the log tells
	records  uint64                   // of which the admission and the ending came
	missing  missing
	keys     keys
	made     setting // of the tenant
}

// A run is a call that was admitted. One id may have been admitted more than once.
type run struct {
	admissions []uint64  // indexes of entries
	admitted   time.Time // the last of them
	endings    int
}

// A setting is what the log says of a policy or of the host.
type setting struct {
	last    audit.Leaf
	changes int64
}

func (s *setting) change(leaf audit.Leaf) { s.last, s.changes = leaf, s.changes+1 }

func (k *checker) tenant(ctx context.Context, name string) error {
	h := &history{checker: k, name: name, missing: missing{calls: map[string]ended{}}, revoked: map[string]grant.Grant{}, open: map[string]*run{}, runtimes: map[string]bundle.Digest{}}
	fault := func(err error) error { return k.damage("I6", name, err) }
	var stop func()
	h.grants, stop = open(k.survey.Grants(ctx, name), func(g grant.Grant) string { return g.ID }, fault)
	defer stop()
	h.versions, stop = open(k.survey.Versions(ctx, name), func(v admin.Version) string { return v.ID }, fault)
	defer stop()
	h.keys, stop = k.openKeys(ctx, name, fault)
	defer stop()
	var end audit.Link
	for leaf, err := range k.survey.Leaves(ctx, name, 0) {
		if err != nil {
			if err := k.damage("I2", name, err); err != nil {
				return err
			}
			break
		}
		end = audit.Link{Seq: leaf.Seq, Prev: leaf.Hash}
		if leaf.Entry, _, err = audit.Decode(leaf.Bytes); err != nil {
			continue // the log's own check has told of it
		}
		if err := h.entry(ctx, leaf); err != nil {
			return err
		}
		k.progress("entries compared with what they tell of", leaf.Index)
	}
	return h.end(ctx, end)
}

// amiss tells what is wrong at an entry.
func (h *history) amiss(invariant string, leaf audit.Leaf, format string, args ...any) {
	h.found(Finding{Invariant: invariant, Tenant: h.name, Entry: &leaf.Index, What: fmt.Sprintf(format, args...), Remedy: inquire})
}

// orphan tells of a row to which no entry came.
func (h *history) orphan(format string, args ...any) {
	h.found(Finding{Invariant: "I6", Tenant: h.name, What: fmt.Sprintf(format, args...) + ", and no entry of the log tells of it at its place", Remedy: inquire})
}

func (h *history) entry(ctx context.Context, leaf audit.Leaf) error {
	switch e := leaf.Entry; e.Kind {
	case audit.Admission:
		r := h.open[e.Run]
		if r == nil {
			r = &run{}
			h.open[e.Run] = r
		}
		r.admissions, r.admitted = append(r.admissions, leaf.Index), e.Time
	case audit.Ending:
		return h.ending(ctx, leaf)
	case audit.Granted:
		g, before, ok := h.grants.take(e.Fact("grant"))
		h.ungranted(before)
		if !ok {
			h.amiss("I6", leaf, "the log tells of grant %s, which is not kept, or stands before its place", e.Fact("grant"))
			return h.grants.err
		}
		h.named[g.Pin] = "grant " + g.ID
		if why := admin.IsGrant(e, g); why != "" {
			h.amiss("I6", leaf, "grant %s is not the one that was granted: %s", g.ID, why)
		}
		if !g.Revoked.IsZero() {
			h.revoked[g.ID] = g
		}
	case audit.Revoked:
		id := e.Fact("grant")
		g, ok := h.revoked[id]
		if !ok {
			h.amiss("I7", leaf, "grant %s was revoked, and is not revoked now, or gone", id)
			return nil
		}
		delete(h.revoked, id)
		if why := admin.IsRevocation(e, g); why != "" {
			h.amiss("I6", leaf, "the revocation of grant %s is not the one that was made: %s", id, why)
		}
	case audit.Imported, audit.Deleted:
		v, before, ok := h.versions.take(e.Fact("version"))
		h.unimported(before)
		if !ok {
			h.amiss("I6", leaf, "the log tells of version %s of skill %q, which is not kept, or stands before its place", e.Fact("version"), e.Subject)
			return h.versions.err
		}
		if !v.Deleted {
			h.named[v.Digest] = "version " + v.ID
		}
		if why := admin.IsVersion(e, v); why != "" {
			h.amiss("I6", leaf, "version %s is not the one that was imported: %s", v.ID, why)
		}
	case audit.Key:
		return h.key(leaf)
	case audit.Tenant:
		h.made.change(leaf)
	case audit.Policy:
		h.policy.change(leaf)
	case audit.Host:
		h.host.change(leaf)
	case audit.Runtime:
		h.host.changes++
		if err := admin.ReadRuntime(e, h.runtimes); err != nil {
			h.amiss("I6", leaf, "the entry of a runtime cannot be read: %v", err)
		}
	case audit.Keeping:
		if d, err := bundle.ParseDigest(e.Fact("digest")); err == nil && h.name == gate.HostTenant && e.Subject == retention.Subject {
			h.erased[d] = true
		}
		if e.Subject == retention.Subject {
			h.missing.erased(e)
		}
	}
	return nil
}

func (h *history) ungranted(rows []grant.Grant) {
	for _, g := range rows {
		h.orphan("grant %s for %s is kept", g.ID, g.Ref)
	}
}

func (h *history) unimported(rows []admin.Version) {
	for _, v := range rows {
		h.orphan("version %s of skill %q is kept", v.ID, v.Skill)
	}
}

func (h *history) ending(ctx context.Context, leaf audit.Leaf) error {
	e := leaf.Entry
	r := h.open[e.Run]
	if r == nil {
		h.amiss("I5", leaf, "call %s has an ending, and no admission that is without one", e.Run)
		return nil
	}
	rec, err := h.survey.Record(ctx, h.name, e.Run)
	switch {
	case errors.Is(err, toolcall.ErrNotFound):
		h.missing.add(e.Run, leaf.Index, r.admitted)
	case err != nil:
		if err := h.damage("I6", h.name, err); err != nil {
			return err
		}
		h.records++
	case rec.AdmissionIndex == r.admissions[0] && r.endings == 0:
		h.records++
		if said := e.Fact("ending"); said != rec.Ending {
			h.amiss("I6", leaf, "the record of call %s says %q, and its ending %q", e.Run, rec.Ending, said)
		}
	case rec.AdmissionIndex > leaf.Index: // of a later call with the same id
		h.missing.add(e.Run, leaf.Index, r.admitted)
	}
	if r.endings++; r.endings == len(r.admissions) {
		delete(h.open, e.Run)
	}
	return nil
}

// end compares what is left when every entry has passed.
func (h *history) end(ctx context.Context, last audit.Link) error {
	kept, err := h.survey.HistoryEnd(ctx, h.name)
	if err := h.damage("I2", h.name, err); err != nil {
		return err
	}
	if err == nil && kept != last {
		h.found(Finding{Invariant: "I2", Tenant: h.name, Remedy: restore,
			What: fmt.Sprintf("the history ends with entry number %d, and beside it stands that it ends with number %d", last.Seq, kept.Seq)})
	}
	for g := range h.grants.rest() {
		h.ungranted([]grant.Grant{g})
	}
	for v := range h.versions.rest() {
		h.unimported([]admin.Version{v})
	}
	if err := errors.Join(h.grants.err, h.versions.err, h.endKeys()); err != nil {
		return err
	}
	for id := range h.revoked {
		h.orphan("grant %s is kept as revoked", id)
	}
	h.report.Grants, h.report.Versions = h.report.Grants+h.grants.count, h.report.Versions+h.versions.count
	if err := h.unended(ctx); err != nil {
		return err
	}
	if err := h.recorded(ctx); err != nil {
		return err
	}
	if !h.Unrecorded {
		h.unerased()
	}
	return h.settings(ctx)
}

// unended tells of the admissions without an ending that no living host has.
func (h *history) unended(ctx context.Context) error {
	for id, r := range h.open {
		for _, index := range r.admissions[r.endings:] {
			leaf, err := h.leaf(ctx, index)
			if err != nil {
				return err
			}
			under := h.Alive != nil && h.Alive(leaf.Entry)
			if !under {
				if under, err = h.endedSince(ctx, id); err != nil {
					return err
				}
			}
			if under {
				h.report.Running++
				continue
			}
			h.found(Finding{Invariant: "I5", Tenant: h.name, Entry: &leaf.Index, Remedy: restart,
				What: fmt.Sprintf("call %s was admitted, has no ending, and no living host works on it", id)})
		}
	}
	return nil
}

// endedSince reports whether the call's ending came after the moment of the
// survey: its host lived then, and may have ended since.
func (h *history) endedSince(ctx context.Context, run string) (bool, error) {
	for leaf, err := range h.Log.Entries(ctx, h.name, h.report.Entries) {
		if err != nil {
			return false, h.damage("I2", h.name, err)
		}
		if leaf.Entry.Kind == audit.Ending && leaf.Entry.Run == run {
			return true, nil
		}
	}
	return false, nil
}

// leaf returns the tenant's leaf at an index, decoded; the zero one where there is none.
func (h *history) leaf(ctx context.Context, index uint64) (audit.Leaf, error) {
	for leaf, err := range h.survey.Leaves(ctx, h.name, index) {
		if err != nil {
			return audit.Leaf{}, h.damage("I2", h.name, err)
		}
		if leaf.Index == index {
			leaf.Entry, _, _ = audit.Decode(leaf.Bytes) // the log's own check tells of one that is none
			return leaf, nil
		}
		break
	}
	return audit.Leaf{Index: index}, nil
}

// recorded tells of the records that belong to no admission with an ending.
func (h *history) recorded(ctx context.Context) error {
	var count uint64
	for _, err := range h.survey.Records(ctx, h.name) {
		if err := h.damage("I6", h.name, err); err != nil {
			return err
		}
		count++
		h.progress("records", count)
	}
	h.report.Records += count
	if count == h.records {
		return nil
	}
	for r, err := range h.survey.Records(ctx, h.name) {
		if err != nil {
			continue // told above
		}
		leaf, err := h.leaf(ctx, r.AdmissionIndex)
		if err != nil {
			return err
		}
		if e := leaf.Entry; e.Kind != audit.Admission || e.Run != r.ID || h.open[r.ID] != nil {
			h.orphan("a record of call %s is kept", r.ID)
		}
	}
	return nil
}

// settings compares the policy, or what holds for the host, with the log.
func (h *history) settings(ctx context.Context) error {
	p, revision, err := h.survey.PolicyAt(ctx, h.name)
	if err := h.damage("I6", h.name, err); err != nil {
		return err
	}
	if err == nil {
		h.setting("policy", h.policy, revision, func(e audit.Entry) string { return admin.IsPolicy(e, p) })
	}
	if err := h.tenantSetting(ctx); err != nil {
		return err
	}
	if h.name != gate.HostTenant {
		return nil
	}
	host, revision, err := h.survey.HostAt(ctx)
	if err := h.damage("I6", h.name, err); err != nil {
		return err
	}
	if err == nil {
		h.setting("setting of the host", h.host, revision, func(e audit.Entry) string { return admin.IsHost(e, host) })
		if !maps.Equal(h.runtimes, host.Runtimes) {
			h.found(Finding{Invariant: "I6", Tenant: h.name, Remedy: inquire,
				What: fmt.Sprintf("the runtimes of the host are not those that were named: the log tells of %v, and kept are %v", h.runtimes, host.Runtimes)})
		}
	}
	return nil
}

func (h *history) setting(what string, said setting, revision int64, differ func(audit.Entry) string) {
	switch {
	case said.changes != revision:
		h.found(Finding{Invariant: "I7", Tenant: h.name, Remedy: inquire,
			What: fmt.Sprintf("the %s was changed %d times, and kept is that of change %d", what, said.changes, revision)})
	case revision > 0:
		if why := differ(said.last.Entry); why != "" {
			h.amiss("I6", said.last, "the %s is not the one that was set: %s", what, why)
		}
	}
}
