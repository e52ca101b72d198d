package runs

import "bytes"

// A Body is what a door has read of a call that comes: it holds room for what is there,
// not for what was announced, so that who announces much and sends nothing takes
// nothing. It is for one goroutine.
type Body struct {
	runs   *Runs
	tenant string
	size   int64 // as it was announced
	text   bytes.Buffer
	held   int64
	free   []func()
	full   error
}

// The steps in which room is held.
const (
	firstStep = 16 << 10
	nextStep  = 256 << 10
)

// Body returns one of the tenant's, of size bytes at most. Its room counts with that of
// the calls under way; give it back with Release.
func (r *Runs) Body(tenant string, size int64) *Body {
	return &Body{runs: r, tenant: tenant, size: size}
}

// Write implements io.Writer. It fails where there is no room; Full tells.
func (b *Body) Write(p []byte) (int, error) {
	for int64(b.text.Len()+len(p)) > b.held && b.held < b.size {
		hold, step := b.runs.Hold, int64(firstStep)
		if b.held > 0 {
			hold, step = b.runs.HoldMore, nextStep
		}
		step = min(step, b.size-b.held)
		free, err := hold(b.tenant, step)
		if err != nil {
			b.full = err
			return 0, err
		}
		b.held += step
		b.free = append(b.free, free)
	}
	return b.text.Write(p)
}

// Bytes returns what came. It is the Body's own.
func (b *Body) Bytes() []byte { return b.text.Bytes() }

// Full returns why there was no room, which wraps slot.ErrBusy; nil: there was.
func (b *Body) Full() error { return b.full }

// Release gives the room back. It may be called again.
func (b *Body) Release() {
	for _, free := range b.free {
		free()
	}
}
