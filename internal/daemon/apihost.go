package daemon

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// apiHost is the house as the API asks it. It is safe for concurrent use: images are
// locked by who works on them, so that an archive that comes slowly holds nobody up.
type apiHost struct {
	h         *House
	turn      *sync.Mutex   // of what takes things away
	verifying chan struct{} // full while the log is computed again: by one at a time
}

var _ httpapi.Host = apiHost{}

func newAPIHost(h *House) apiHost { return apiHost{h, new(sync.Mutex), make(chan struct{}, 1)} }

func (a apiHost) Posture(ctx context.Context) (client.Posture, error) {
	p, err := a.h.Posture(ctx)
	out := client.Posture{Executor: p.Executor, Tier: string(p.Tier), Claimed: p.Claimed, Walls: []client.Wall{}}
	for _, w := range p.Walls {
		out.Walls = append(out.Walls, client.Wall(w))
	}
	return out, err
}

func (a apiHost) Fixed() bool { return a.h.Config.File != "" }

func (a apiHost) Probe(ctx context.Context, ext, text string) (gate.Interpreter, error) {
	return a.h.Probe(ctx, ext, text)
}

func (a apiHost) Runtimes(ctx context.Context) ([]client.Runtime, error) {
	found, err := a.h.Runtimes(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]client.Runtime, len(found))
	for i, r := range found {
		list[i] = toRuntime(r)
	}
	return list, nil
}

func (a apiHost) ImportRuntime(ctx context.Context, n admin.Naming, platform string, archive io.Reader) (client.ImportedRuntime, error) {
	p, err := oci.ParsePlatform(platform)
	if err != nil {
		return client.ImportedRuntime{}, badImage{err}
	}
	made, err := a.h.ImportRuntime(ctx, n, "", archive, oci.Options{Platform: p})
	if errors.Is(err, image.ErrContent) {
		err = badImage{err}
	}
	if err != nil {
		return client.ImportedRuntime{}, err
	}
	return client.ImportedRuntime{Runtime: toRuntime(made.Runtime), Before: made.Before, Skipped: made.Skipped, Left: made.Left}, nil
}

// A badImage is what the API knows as content that cannot be used, whose text is shown.
type badImage struct{ error }

func (b badImage) Unwrap() []error { return []error{bundle.ErrContent, b.error} }

func (a apiHost) RemoveRuntime(ctx context.Context, actor, name, reason string) (client.RemovedRuntime, error) {
	a.turn.Lock()
	defer a.turn.Unlock()
	meant, kept, err := a.h.RemoveRuntime(ctx, actor, name, reason)
	if err != nil {
		return client.RemovedRuntime{}, err
	}
	return client.RemovedRuntime{Name: name, Digest: meant, Kept: kept}, nil
}

func (a apiHost) DeleteTenant(ctx context.Context, by access.Principal, name, reason string, preview bool, seen func(access.Tenant) error) (client.Deletion, error) {
	a.turn.Lock()
	defer a.turn.Unlock()
	d, err := a.h.DeleteTenant(ctx, retention.Deleting{By: by, Tenant: name, Reason: reason, Seen: seen}, preview)
	return client.Deletion{Keys: d.Keys, Grants: d.Grants, Skills: d.Skills, Calls: d.Calls, Contents: d.Contents, UnderWay: d.UnderWay}, err
}

func (a apiHost) VerifyLog(ctx context.Context) (audit.Verified, error) {
	select {
	case a.verifying <- struct{}{}:
		defer func() { <-a.verifying }()
	case <-ctx.Done():
		return audit.Verified{}, context.Cause(ctx)
	}
	return a.h.VerifyLog(ctx, Against{}, nil)
}

// maxFindings is how many findings an answer holds, as the document says.
const maxFindings = 500

func (a apiHost) Fsck(ctx context.Context) (client.Checked, error) {
	out := client.Checked{Findings: []client.Finding{}}
	r, err := a.h.Fsck(ctx, nil, func(f fsck.Finding) {
		if len(out.Findings) < maxFindings {
			f.What = audit.Clip(f.What)
			out.Findings = append(out.Findings, client.Finding(f))
		}
	})
	out.OK, out.Report = r.Findings == 0, client.CheckReport(r)
	return out, err
}

func (a apiHost) Retention() client.Retention {
	r := a.h.Rules()
	return client.Retention{Contents: new(r.Contents.Seconds()), Calls: new(r.Calls.Seconds()), Details: new(r.Details.Seconds())}
}

func (a apiHost) Erase(ctx context.Context, actor string, in client.Retention, preview bool) (client.Erasure, error) {
	r := a.h.Rules()
	for to, by := range map[*time.Duration]*float64{&r.Contents: in.Contents, &r.Calls: in.Calls, &r.Details: in.Details} {
		if by != nil {
			*to = time.Duration(math.Ceil(*by * float64(time.Second))) // a short time is not zero, which keeps for ever
		}
	}
	if err := r.Validate(); err != nil {
		return client.Erasure{}, client.NewProblem(client.Invalid, err.Error())
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	if preview {
		e, err := a.h.Expired(ctx, r)
		return client.Erasure(e), err
	}
	e, err := a.h.Erase(ctx, actor, r)
	return client.Erasure(e), err
}

func toRuntime(r Runtime) client.Runtime {
	out := client.Runtime{Name: r.Name, Digest: r.Digest, UsedBy: r.UsedBy, Older: r.Older, Source: r.Source, Amiss: r.Amiss}
	if i := r.Info; i != nil {
		out.Info = new(client.RuntimeInfo(*i))
	}
	return out
}
