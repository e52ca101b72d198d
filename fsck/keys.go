package fsck

import (
	"context"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
)

// keys are the keys of a history, of the platform's beside the host's.
type keys struct {
	lane     *lane[access.Key]
	replaced map[string]access.Key // rows of which the entry that tells so did not come yet
	revoked  map[string]access.Key
}

func (k *checker) openKeys(ctx context.Context, name string, fault func(error) error) (ks keys, stop func()) {
	if name == gate.HostTenant {
		name = ""
	}
	ks = keys{replaced: map[string]access.Key{}, revoked: map[string]access.Key{}}
	ks.lane, stop = open(k.survey.Keys(ctx, name), func(key access.Key) string { return key.ID }, fault)
	return ks, stop
}

// key compares an entry of a key with the row that it tells of.
func (h *history) key(leaf audit.Leaf) error {
	e := leaf.Entry
	id := e.Fact("key")
	switch act := e.Fact("act"); act {
	case admin.KeyRevoked:
		k, ok := h.keys.revoked[id]
		if !ok {
			h.amiss("I7", leaf, "key %s was revoked, and is not revoked now, or gone", id)
			return nil
		}
		delete(h.keys.revoked, id)
		if why := admin.IsKeyRevocation(e, k); why != "" {
			h.amiss("I6", leaf, "the revocation of key %s is not the one that was made: %s", id, why)
		}
		return nil
	case admin.KeyReplaced:
		if old, ok := h.keys.replaced[e.Fact("replaces")]; !ok {
			h.amiss("I7", leaf, "key %s was replaced, and is not replaced now, or gone", e.Fact("replaces"))
		} else {
			delete(h.keys.replaced, old.ID)
			if why := admin.IsReplacement(e, old); why != "" {
				h.amiss("I6", leaf, "the replacement of key %s is not the one that was made: %s", old.ID, why)
			}
		}
	case admin.KeyCreated:
	default:
		h.amiss("I6", leaf, "the entry of key %s tells of the act %q, which is none", id, act)
		return nil
	}
	k, before, ok := h.keys.lane.take(id)
	h.unmade(before)
	if !ok {
		h.amiss("I6", leaf, "the log tells of key %s, which is not kept, or stands before its place", id)
		return h.keys.lane.err
	}
	if why := admin.IsKey(e, k); why != "" {
		h.amiss("I6", leaf, "key %s is not the one that was made: %s", id, why)
	}
	if k.ReplacedBy != "" {
		h.keys.replaced[id] = k
	}
	if !k.Revoked.IsZero() {
		h.keys.revoked[id] = k
	}
	return nil
}

func (h *history) unmade(rows []access.Key) {
	for _, k := range rows {
		h.orphan("key %s is kept", k.ID)
	}
}

// endKeys tells of what no entry told of.
func (h *history) endKeys() error {
	for k := range h.keys.lane.rest() {
		h.unmade([]access.Key{k})
	}
	for id := range h.keys.replaced {
		h.orphan("key %s is kept as replaced", id)
	}
	for id := range h.keys.revoked {
		h.orphan("key %s is kept as revoked", id)
	}
	h.report.Keys += h.keys.lane.count
	return h.keys.lane.err
}

// tenantSetting compares the tenant, if somebody made it, with the log.
func (h *history) tenantSetting(ctx context.Context) error {
	t, revision, err := h.survey.TenantAt(ctx, h.name)
	if err != nil {
		return h.damage("I6", h.name, err)
	}
	h.setting("setting of the tenant", h.made, revision, func(e audit.Entry) string { return admin.IsTenant(e, t) })
	return nil
}
