package cli

import (
	"context"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/retention"
)

func (l *local) RotateLogKey(ctx context.Context, reason string) (audit.PublicKey, error) {
	return l.h.Notary.Rotate(ctx, l.actor, reason)
}

func (l *local) Fsck(ctx context.Context, progress func(what string, done uint64), tell func(fsck.Finding)) (fsck.Report, error) {
	return l.h.Fsck(ctx, progress, tell)
}

func (l *local) Rules(context.Context) (retention.Rules, error) { return l.h.Rules(), nil }

func (l *local) Erase(ctx context.Context, f ruleFlags, preview bool) (retention.Erasure, error) {
	r := f.over(l.h.Rules())
	if preview {
		return l.h.Expired(ctx, r)
	}
	return l.h.Erase(ctx, l.actor, r)
}
