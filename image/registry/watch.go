package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tracon-go/tracon/image/oci"
)

const (
	// waiting is how long a registry may send nothing, and how long it may take to begin.
	waiting = time.Minute

	// slowest is how many bytes a second it must send on the whole, after the first
	// waiting: a slow line sends more, and who means to hold us up sends less.
	slowest = 16 << 10
)

// errSilent is who stops a request whose answer does not go on.
var errSilent = fmt.Errorf("registry: it sends nothing for %s, or less than %d bytes a second", waiting, slowest)

// watched returns what ask gets of the registry, in whatever number of requests, as long
// as it goes on. The context of ask's requests ends with what is returned.
func (s *source) watched(ctx context.Context, ask func(context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(s.waiting, func() { cancel(errSilent) })
	r, err := ask(ctx)
	watch.Stop()
	if err == nil {
		return &body{ReadCloser: r, ctx: ctx, cancel: cancel, watch: watch, waiting: s.waiting}, nil
	}
	defer cancel(nil)
	if errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	return nil, err
}

// A body is what a registry answers with, as long as it goes on. The time that its reader
// takes between two reads is not the registry's.
type body struct {
	io.ReadCloser
	ctx     context.Context // of the requests
	cancel  context.CancelCauseFunc
	watch   *time.Timer // runs while something is waited for
	waiting time.Duration
	came    int64         // bytes
	took    time.Duration // the time in which they came
}

// Read reads on. What broke off on its way is an error that wraps oci.ErrBroken.
func (b *body) Read(p []byte) (int, error) {
	since := time.Now()
	b.watch.Reset(min(b.waiting, b.waiting+time.Duration(b.came/slowest)*time.Second-b.took))
	n, err := b.ReadCloser.Read(p)
	b.watch.Stop()
	b.came, b.took = b.came+int64(n), b.took+time.Since(since)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case b.ctx.Err() != nil:
		return n, context.Cause(b.ctx)
	}
	return n, fmt.Errorf("%w: %w", oci.ErrBroken, err)
}

// Close ends the requests.
func (b *body) Close() error {
	b.watch.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
