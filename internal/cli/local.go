package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/image/registry"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/toolcall"
)

// local is the installation in this machine's data folder.
type local struct {
	h             *daemon.House
	tenant, actor string
}

func (a *app) local(h *daemon.House) *local { return &local{h, a.tenant, a.who()} }

var _ backend = (*local)(nil)

func (l *local) Tenant() string { return l.tenant }

func (l *local) Calls(ctx context.Context, f toolcall.Filter) ([]toolcall.Record, error) {
	return l.h.Store.Calls(ctx, l.tenant, f)
}

func (l *local) Usage(ctx context.Context, f toolcall.DailyFilter) ([]toolcall.Daily, error) {
	return l.h.Store.DailyCalls(ctx, l.tenant, f)
}

func (l *local) Call(ctx context.Context, id string) (toolcall.Record, []audit.Leaf, error) {
	c, err := l.h.Store.Call(ctx, l.tenant, id)
	if err != nil {
		return c, nil, err
	}
	var leaves []audit.Leaf
	for leaf, err := range l.h.Log.Entries(ctx, l.tenant, c.AdmissionIndex) {
		if err != nil {
			return c, nil, err
		}
		if leaf.Entry.Run == c.ID {
			leaves = append(leaves, leaf)
		}
		if len(leaves) == 2 {
			break // its admission and its ending
		}
	}
	return c, leaves, nil
}

func (l *local) SkillName(_ context.Context, word string) (string, error) { return l.h.SkillName(word) }

func (l *local) Review(ctx context.Context, ref grant.Ref, full bool) (reviewJSON, error) {
	r, err := l.h.Admin.Review(ctx, ref)
	if err != nil {
		return reviewJSON{}, err
	}
	return toReviewJSON(r, full), nil
}

func (l *local) Difference(ctx context.Context, ref grant.Ref) (grant.Grant, []changeJSON, error) {
	r, err := l.h.Admin.Review(ctx, ref)
	return r.Granted, toChangesJSON(r.Changes), err
}

func (l *local) Grant(ctx context.Context, g admin.Granting) (made grant.Grant, err error) {
	g.Actor = l.actor
	if g.MinTier == "" {
		if g.MinTier, err = l.h.Tier(ctx); err != nil {
			return made, err
		}
	}
	return l.h.Admin.Grant(ctx, g)
}

func (l *local) Grants(ctx context.Context, f grant.Filter) ([]listedGrant, error) {
	grants, err := l.h.Admin.Grants(ctx, l.tenant, f)
	if err != nil {
		return nil, err
	}
	states, err := l.h.Admin.States(ctx, grants, time.Now())
	if err != nil {
		return nil, err
	}
	list := []listedGrant{}
	for i, g := range grants {
		list = append(list, listedGrant{g, states[i]})
	}
	return list, nil
}

func (l *local) Revoke(ctx context.Context, id, reason string) (grant.Grant, error) {
	return l.h.Admin.Revoke(ctx, l.actor, l.tenant, id, reason)
}

func (l *local) Policy(ctx context.Context) (gate.Policy, error) {
	return l.h.Gate.Policy(ctx, l.tenant)
}

func (l *local) SetPolicy(ctx context.Context, f policyFlags) (gate.Policy, error) {
	if _, err := l.h.Admin.SetPolicy(ctx, l.actor, l.tenant, f.apply); err != nil {
		return gate.Policy{}, err
	}
	return l.Policy(ctx)
}

func (l *local) Host(ctx context.Context) (gate.Host, error) { return l.h.Hosts.Host(ctx) }

func (l *local) HostKept() string {
	if l.h.Config.File != "" {
		return l.h.Config.File
	}
	return "the data folder (`tracon policy set --host`)"
}

func (l *local) SetHost(ctx context.Context, c hostChange) (gate.Host, error) {
	if l.h.Config.File != "" {
		return gate.Host{}, hint(errors.New("the host's settings stand in the configuration file"), "set `enabled`, `interpreters`, `network` and `require_walls` in %s", l.h.Config.File)
	}
	return l.h.Admin.SetHost(ctx, l.actor, func(s *gate.Host) error {
		if c.enabled != nil {
			s.Enabled = *c.enabled
		}
		if c.network != nil {
			s.Network = *c.network
		}
		if c.require != nil {
			s.RequireWalls = *c.require
		}
		if c.interpreters == nil {
			return nil
		}
		s.Interpreters = map[string]gate.Interpreter{}
		for ext, text := range c.interpreters {
			in, err := l.h.Probe(ctx, ext, text)
			if err != nil {
				return err
			}
			s.Interpreters[ext] = in
		}
		return nil
	})
}

func (l *local) Declare(ctx context.Context, skill, script string) (gate.Declaration, error) {
	return l.h.Declare(ctx, l.tenant, skill, script)
}

func (l *local) Explain(ctx context.Context, c gate.Call) ([]gate.Verdict, error) {
	runner, err := l.h.Start(ctx)
	if err != nil {
		return nil, err
	}
	return runner.Explain(ctx, c)
}

func (l *local) Run(ctx context.Context, c gate.Call) (ran, error) {
	runner, err := l.h.Start(ctx)
	if err != nil {
		return ran{}, l.remedied(lost(err))
	}
	out, err := runner.Run(ctx, c)

	// The script must be gone and its ending written before this program is.
	if cerr := l.h.Stop(context.WithoutCancel(ctx)); cerr != nil && err == nil {
		err = cerr
	}
	r := ran{Outcome: out, model: tracon.ModelText(out, err)}
	if out.Receipt.Valid() {
		r.audit = &auditJSON{Index: out.Receipt.Index(), Hash: out.Receipt.Hash().String()}
		if text, err := out.Proof.MarshalText(); err == nil && !out.Proof.IsZero() {
			r.audit.Receipt = string(text)
		}
	}
	return r, l.remedied(err)
}

// remedied is err with what to do, where whoever runs the scripts elsewhere did not start one.
func (l *local) remedied(err error) error {
	if remedy := l.h.Remedy(err); remedy != "" {
		return hint(err, "%s", remedy)
	}
	return err
}

func (l *local) GrantsAtOnce() bool { return l.h.Config.File == "" && !l.h.Config.Production }

func (l *local) OpenHint() string {
	if l.h.Config.File != "" {
		return fmt.Sprintf("`enabled` and `interpreters` in %s, and `tracon policy set --enabled --interpreters …` for tenant %s", l.h.Config.File, l.tenant)
	}
	return "`tracon run --grant …` does it, or `tracon policy set [--host] --enabled --interpreters …`"
}

func (l *local) Entries(ctx context.Context, f entryFilter) iter.Seq2[audit.Leaf, error] {
	tenant := l.tenant
	if f.all {
		tenant = ""
	}
	return l.h.Log.Entries(ctx, tenant, f.from)
}

func (l *local) VerifyLog(ctx context.Context, against daemon.Against, progress func(uint64)) (audit.Verified, error) {
	return l.h.VerifyLog(ctx, against, progress)
}

func (l *local) Prove(ctx context.Context, index uint64, _ bool) ([]byte, audit.Leaf, error) {
	p, err := l.h.Notary.Prove(ctx, index)
	if err != nil {
		return nil, audit.Leaf{}, err
	}
	leaf, err := provedBy(p)
	if err != nil {
		return nil, leaf, err
	}
	text, err := p.MarshalText()
	return text, leaf, err
}

func (l *local) CheckReceipt(ctx context.Context, receipt []byte) (audit.Leaf, audit.Checkpoint, error) {
	keys, err := l.h.Notary.Keys()
	if err != nil {
		return audit.Leaf{}, audit.Checkpoint{}, err
	}
	leaf, c, err := openReceipt(receipt, keys...)
	if err == nil {
		err = l.h.Notary.Fits(ctx, c)
	}
	return leaf, c, err
}

func (l *local) Checkpoint(ctx context.Context) (audit.Checkpoint, []audit.PublicKey, error) {
	c, err := l.h.Notary.Checkpoint(ctx)
	if err != nil {
		return c, nil, err
	}
	keys, err := l.h.Notary.Keys()
	return c, keys, err
}

func (l *local) Runtimes(ctx context.Context) ([]daemon.Runtime, error) { return l.h.Runtimes(ctx) }

func (l *local) Runtime(ctx context.Context, name string, verify bool) (daemon.Runtime, error) {
	r, err := l.h.FindRuntime(ctx, name)
	if err != nil || !verify || r.Amiss != "" {
		return r, err
	}
	if err = l.h.Images.Verify(ctx, r.Digest); errors.Is(err, image.ErrDamaged) {
		r.Amiss, err = err.Error(), nil
	}
	return r, err
}

func (l *local) ImportRuntime(ctx context.Context, n admin.Naming, dir string, r io.Reader, o oci.Options) (daemon.Imported, error) {
	n.Actor = l.actor
	return l.h.ImportRuntime(ctx, n, dir, r, o)
}

func (l *local) PullRuntime(ctx context.Context, n admin.Naming, reference string, from registry.Options, o oci.Options) (daemon.Imported, error) {
	n.Actor = l.actor
	return l.h.PullRuntime(ctx, n, reference, from, o)
}

func (l *local) RemoveRuntime(ctx context.Context, name, reason string) (bundle.Digest, bool, error) {
	return l.h.RemoveRuntime(ctx, l.actor, name, reason)
}

// hostList is how to list an interpreter that lies in a runtime, without a configuration file.
const hostList = ": `tracon policy set --host --interpreters py=runtime:%s`, with all else that the list is to hold"

func (l *local) ListHint(name string) string {
	if l.h.Config.File != "" {
		return fmt.Sprintf(" in %s: interpreters: {py: runtime:%s}", l.h.Config.File, name)
	}
	return fmt.Sprintf(hostList, name)
}

// toReviewJSON is what there is to read of r; with the text of every file where
// full is true.
func toReviewJSON(r admin.Review, full bool) reviewJSON {
	j := reviewJSON{Ref: r.Ref, Digest: r.Content.Digest(), Files: filesOf(r.Content), Changes: toChangesJSON(r.Changes), Risks: risks(r)}
	for i := range j.Files {
		if text, _, _ := r.Content.Text(j.Files[i].Path); full {
			j.Files[i].Text = &text
		}
	}
	if r.Granted.ID != "" {
		j.Granted, j.State = &r.Granted, r.Granted.State(time.Now())
	}
	return j
}
