package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/image/registry"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

func (r *remote) Entries(ctx context.Context, f entryFilter) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		filter := client.EntryFilter{From: f.from, Kinds: f.kinds, Run: f.run, Actor: f.actor, Subject: f.subject, Since: f.since.Time, Until: f.until.Time, Leaf: f.leaves}
		part := r.c.Entries
		if f.all {
			part = r.platform.AllEntries
		}
		for cursor := ""; ; {
			page, err := part(ctx, filter, cursor, 1000)
			if err != nil {
				yield(audit.Leaf{}, r.told(ctx, err, nil))
				return
			}
			for _, e := range page.Items {
				if leaf, err := ofEntry(e); !yield(leaf, err) || err != nil {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

func ofEntry(e client.Entry) (audit.Leaf, error) {
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(e.Facts)) {
		facts = append(facts, name, e.Facts[name])
	}
	l := audit.Leaf{Index: e.Index, Seq: e.Seq, Bytes: e.Leaf, Entry: audit.Entry{ID: e.ID, Time: e.Time, Tenant: e.Tenant, Actor: e.Actor,
		Kind: audit.Kind(e.Kind), Subject: e.Subject, Run: e.Run, Count: e.Count, Facts: audit.Facts(facts...)}}
	return l, l.Hash.UnmarshalText([]byte(e.Hash))
}

func (r *remote) VerifyLog(ctx context.Context, _ daemon.Against, _ func(uint64)) (audit.Verified, error) {
	v, err := r.platform.VerifyLog(ctx)
	if err != nil {
		return audit.Verified{}, r.told(ctx, err, nil)
	}
	out := audit.Verified{Tree: audit.Tree{Size: v.Size}, Signed: v.Signed, Claims: v.Checkpoints, Key: audit.PublicKey(v.Key)}
	if err := out.Tree.Root.UnmarshalText([]byte(v.Root)); err != nil {
		return out, err
	}
	if v.OK {
		return out, nil
	}
	err = fault(v.Fault, fmt.Sprintf("the server %s found so in its log", r.server))
	if v.Index != nil {
		err = &audit.BrokenError{Index: *v.Index, Err: err}
	}
	return out, err
}

// fault is the error that the server's word for a fault stands for.
func fault(word, where string) error {
	for _, f := range faults {
		if f.word == word {
			return fmt.Errorf("%w: %s", f.err, where)
		}
	}
	return fmt.Errorf("%s: %s", word, where)
}

func (r *remote) Prove(ctx context.Context, index uint64, whosever bool) ([]byte, audit.Leaf, error) {
	do := r.c.Prove
	if whosever {
		do = r.platform.ProveAny
	}
	p, err := do(ctx, index)
	if err != nil {
		return nil, audit.Leaf{}, r.told(ctx, err, fmt.Errorf("%w: %d", audit.ErrNoEntry, index))
	}
	leaf, err := ofEntry(p.Entry)
	return []byte(p.Receipt), leaf, err
}

func (r *remote) CheckReceipt(ctx context.Context, receipt []byte) (audit.Leaf, audit.Checkpoint, error) {
	_, note, _ := bytes.Cut(receipt, []byte("\n\n"))
	at, _ := audit.ParseCheckpoint(note) // of what is none, the server says so
	c, err := r.c.CheckReceipt(ctx, string(receipt))
	switch {
	case err != nil:
		return audit.Leaf{}, at, r.told(ctx, err, nil)
	case !c.OK:
		return audit.Leaf{}, at, fault(c.Fault, "the server "+r.server+" says so of this receipt")
	case c.Entry == nil:
		return audit.Leaf{}, at, errors.New("the server says that the receipt holds, and not of which entry")
	}
	leaf, err := ofEntry(*c.Entry)
	return leaf, at, err
}

func (r *remote) Checkpoint(ctx context.Context) (audit.Checkpoint, []audit.PublicKey, error) {
	k, err := r.platform.Checkpoint(ctx)
	if err != nil {
		return audit.Checkpoint{}, nil, r.told(ctx, err, nil)
	}
	var keys []audit.PublicKey
	for _, text := range k.Keys {
		key, err := audit.ParsePublicKey(text)
		if err != nil {
			return audit.Checkpoint{}, nil, fmt.Errorf("the server's key: %w", err)
		}
		keys = append(keys, key)
	}
	c, err := audit.OpenCheckpoint([]byte(k.Note), keys...)
	return c, keys, err
}

func (r *remote) Runtimes(ctx context.Context) ([]daemon.Runtime, error) {
	list, err := r.platform.Runtimes(ctx)
	runtimes := []daemon.Runtime{}
	for _, rt := range list {
		runtimes = append(runtimes, ofRuntime(rt))
	}
	return runtimes, r.told(ctx, err, nil)
}

func (r *remote) Runtime(ctx context.Context, name string, _ bool) (daemon.Runtime, error) {
	rt, _, err := r.platform.Runtime(ctx, name)
	return ofRuntime(rt), r.told(ctx, err, fmt.Errorf("%w: there is no runtime %q", grant.ErrNotFound, name))
}

// ImportRuntime sends the archive: a folder is refused before.
func (r *remote) ImportRuntime(ctx context.Context, n admin.Naming, _ string, archive io.Reader, o oci.Options) (daemon.Imported, error) {
	bar := r.progress("bytes sent")
	defer bar.done()
	out, err := r.platform.ImportRuntime(ctx, n.Name, n.Replace, n.Reason, o.Platform.String(), &counted{r: archive, show: bar.show})
	if errors.Is(err, client.Conflict) {
		return daemon.Imported{}, admin.ErrNamed
	}
	if err != nil {
		return daemon.Imported{}, r.told(ctx, err, nil)
	}
	return daemon.Imported{Runtime: ofRuntime(out.Runtime), Before: out.Before, Skipped: append([]string{}, out.Skipped...), Left: out.Left}, nil
}

// PullRuntime has the parts of the image here, and sends them on as an archive: for the
// platform that was asked for, else for that of the server.
func (r *remote) PullRuntime(ctx context.Context, n admin.Naming, reference string, from registry.Options, o oci.Options) (out daemon.Imported, err error) {
	if o.Platform == (oci.Platform{}) {
		host, _, err := r.platform.Host(ctx)
		if err != nil && !errors.Is(err, client.Forbidden) { // whoever may not see it says --platform
			return daemon.Imported{}, r.told(ctx, err, nil)
		}
		if o.Platform, err = oci.ParsePlatform(host.Platform); err != nil {
			return daemon.Imported{}, fmt.Errorf("what the server is: %w", err)
		}
	}
	scratch, remove, err := pullFolder()
	if err != nil {
		return daemon.Imported{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	parts, err := registry.Pull(ctx, reference, scratch, from, o)
	if err != nil {
		return daemon.Imported{}, err
	}
	archive, to := io.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		to.CloseWithError(parts.WriteArchive(ctx, to))
	}()
	out, err = r.ImportRuntime(ctx, n, "", archive, oci.Options{Platform: o.Platform})
	archive.Close()
	<-over
	return out, err
}

func (r *remote) RemoveRuntime(ctx context.Context, name, reason string) (bundle.Digest, bool, error) {
	out, err := r.platform.RemoveRuntime(ctx, name, "", reason)
	return out.Digest, out.Kept, r.told(ctx, err, fmt.Errorf("%w: there is no runtime %q", grant.ErrNotFound, name))
}

func (r *remote) ListHint(name string) string { return fmt.Sprintf(hostList, name) }

func ofRuntime(r client.Runtime) daemon.Runtime {
	out := daemon.Runtime{Name: r.Name, Digest: r.Digest, UsedBy: append([]string{}, r.UsedBy...), Older: r.Older, Source: r.Source, Amiss: r.Amiss}
	if r.Info != nil {
		out.Info = new(image.Info(*r.Info))
	}
	return out
}

// Examine says what a stranger to the host can see: that the server answers and is
// ready, whom it takes us for, the tenant's switch, and the walls where it tells them.
func (r *remote) Examine(ctx context.Context, tier grant.Tier) (examination, error) {
	findings := []finding{{"server", true, r.server + ", version " + r.version, ""},
		{"key", true, fmt.Sprintf("%s, with %s", r.who.Actor, strings.Join(r.who.Roles, " and ")), ""}}
	ready, err := r.platform.Ready(ctx)
	if err != nil {
		return examination{}, r.told(ctx, err, nil)
	}
	findings = append(findings, finding{"ready", ready.Status == "ready", strings.TrimSuffix(ready.Status+": "+ready.Why, ": "),
		mark(ready.Status == "ready", "", "`tracon doctor` on the server's machine says why")})
	need := required{tier, "--tier"}
	var policy gate.Policy
	if r.who.Tenant != "" { // the platform sees nothing of a tenant's
		if policy, err = r.Policy(ctx); err != nil {
			return examination{}, err
		}
		findings = append(findings, finding{"tenant's switch", policy.Enabled, r.tenant + " is " + mark(policy.Enabled, "on", "off"), mark(policy.Enabled, "", "`tracon policy set --enabled`")})
	}
	if tier == "" && r.who.Tenant != "" {
		if need, err = requiredBy(ctx, r); err != nil {
			return examination{}, err
		}
	}
	p, err := r.platform.Posture(ctx)
	if errors.Is(err, client.Forbidden) {
		if tier != "" {
			return examination{}, hint(errors.New("the server tells its walls to the platform alone"), "take a key of the platform for --tier")
		}
		return examination{!slices.ContainsFunc(findings, func(f finding) bool { return !f.OK }), need.tier, false, append(findings,
			finding{"executor", true, "the server tells its walls to the platform alone", ""}), executor.Posture{Walls: []executor.Wall{}}}, nil
	}
	if err != nil {
		return examination{}, r.told(ctx, err, nil)
	}
	host, err := r.Host(ctx)
	if err != nil {
		return examination{}, err
	}
	posture := executor.Posture{Executor: p.Executor, Tier: grant.Tier(p.Tier), Claimed: p.Claimed, Walls: []executor.Wall{}}
	for _, w := range p.Walls {
		posture.Walls = append(posture.Walls, executor.Wall(w))
	}
	findings = append(findings, finding{"host's switch", host.Enabled, mark(host.Enabled, "on", "off"), mark(host.Enabled, "", "`tracon policy set --host --enabled`")},
		finding{"executor", true, standing(posture), ""})
	return concluded(findings, tier, need, host, policy, posture), nil
}
