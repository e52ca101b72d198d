package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/runs"
)

// asks is under which the library hands an asking on, with its request, to the answer.
const asks = "asking"

// asking is one request over HTTP until it is answered: who asks, and what room it has.
type asking struct {
	principal access.Principal
	still     func(context.Context) error // whether who asks may still run scripts, as a [gate.Call] has it
	gone      chan struct{}               // closed when the credential holds no longer; nil: nobody looks
	runs      *runs.Runs                  // whose room it takes; nil: nobody counts

	mu   sync.Mutex
	free []func()
	over bool // it was answered
}

// askingOf returns the asking of a request; nil: it came by streams.
func askingOf(extra *mcp.RequestExtra) *asking {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	a, _ := extra.TokenInfo.Extra[asks].(*asking)
	return a
}

// hold takes room for n bytes until the request is answered, or reports that there is none.
func (a *asking) hold(n int64) bool {
	if a == nil || a.runs == nil {
		return true
	}
	free, err := a.runs.Hold(a.principal.Tenant, n)
	if err != nil {
		return false
	}
	return a.keep(free)
}

// keep has free called when the request is answered, or now where it was; then it reports
// false.
func (a *asking) keep(free func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		free()
		return false
	}
	a.free = append(a.free, free)
	return true
}

// answered gives back what it holds.
func (a *asking) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, free := range a.free {
		free()
	}
}

// read reads the body of r, of at most most bytes, while there is room for what came.
func (a *asking) read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	from := http.MaxBytesReader(w, r.Body, most)
	if a.runs == nil {
		return io.ReadAll(from)
	}
	size := most
	if n := r.ContentLength; n >= 0 {
		size = min(n, most)
	}
	came := a.runs.Body(a.principal.Tenant, size)
	a.keep(came.Release)
	_, err := io.CopyBuffer(came, from, make([]byte, 8<<10))
	return came.Bytes(), err
}

// stillMay returns what says whether the credential of r still holds for what it was, and
// may do what is needed. An error that wraps gate.ErrDenied says no, any other that it
// could not be found out.
func (h *Handler) stillMay(r *http.Request, as access.Principal, need access.Permission) func(context.Context) error {
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = http.NoBody // else it is all kept while a call waits
	return func(ctx context.Context) error {
		of, stop := context.WithCancel(r.Context())
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		p, known, err := h.c.Again(r.WithContext(of))
		switch {
		case err != nil:
			return err
		case !known, !p.Same(as):
			return fmt.Errorf("%w: the credential of the call holds no longer", gate.ErrDenied)
		}
		if err := access.Check(ctx, h.c.Authorizer, p, need); err != nil {
			return fmt.Errorf("%w: who called may do this no longer: %w", gate.ErrDenied, err)
		}
		return nil
	}
}
