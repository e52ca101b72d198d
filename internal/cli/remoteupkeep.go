package cli

import (
	"context"
	"math"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

func (r *remote) RotateLogKey(ctx context.Context, reason string) (audit.PublicKey, error) {
	k, err := r.platform.RotateLogKey(ctx, reason)
	if err != nil {
		return "", r.told(ctx, err, nil)
	}
	return audit.ParsePublicKey(k.Key)
}

// Fsck tells what the server found when it has looked at everything: it tells no steps.
func (r *remote) Fsck(ctx context.Context, _ func(string, uint64), tell func(fsck.Finding)) (fsck.Report, error) {
	stop := r.progress("the server looks").during()
	k, err := r.platform.Check(ctx)
	stop()
	if err != nil {
		return fsck.Report{}, r.told(ctx, err, nil)
	}
	for _, f := range k.Findings {
		tell(fsck.Finding(f))
	}
	return fsck.Report(k.Report), nil
}

func (r *remote) Rules(ctx context.Context) (retention.Rules, error) {
	k, err := r.platform.Retention(ctx)
	if err != nil {
		return retention.Rules{}, r.told(ctx, err, nil)
	}
	return ruleFlags{stay(k.Contents), stay(k.Calls), stay(k.Details)}.over(retention.Rules{}), nil
}

// stay is a time as the API has it, in seconds.
func stay(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(math.Round(*seconds * float64(time.Second))))
}

// inSeconds is a time as the API takes it.
func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

func (r *remote) Erase(ctx context.Context, f ruleFlags, preview bool) (retention.Erasure, error) {
	do := r.platform.Erase
	if preview {
		do = r.platform.PreviewErasure
	}
	e, err := do(ctx, client.Retention{Contents: inSeconds(f.contents), Calls: inSeconds(f.calls), Details: inSeconds(f.details)})
	return retention.Erasure(e), r.told(ctx, err, nil)
}
