//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// keeperPause is how long an engine is left alone that could not remove something.
const keeperPause = time.Second

// A keeper removes the containers that could not be removed when their run was over,
// because the engine hung or was gone, or had not made them yet: as soon as it can. It is
// safe for concurrent use.
type keeper struct {
	remove func(ctx context.Context, name string) error
	log    *slog.Logger

	mu      sync.Mutex
	lost    map[string]time.Time // until when the engine may make it yet; zero: it has
	working bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// add says that a container may be there which must not, or may come until then.
func (k *keeper) add(name string, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost[name] = until
	if k.working {
		return
	}
	k.working = true
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.done.Go(func() { k.work(ctx) })
}

func (k *keeper) work(ctx context.Context) {
	for told := false; ; {
		name := k.next()
		if name == "" {
			return
		}
		err := k.remove(ctx, name)
		if err == nil && k.over(name) {
			continue
		}
		if err != nil && !told && ctx.Err() == nil {
			k.log.Error("a container of a run is not removed yet; the engine is asked again", "err", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(keeperPause):
		}
	}
}

// over reports whether a container that is not there will not come either, and forgets it
// then.
func (k *keeper) over(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.lost[name]) {
		return false
	}
	delete(k.lost, name)
	return true
}

// next returns a container that is still to be removed; where there is none, the work
// is done.
func (k *keeper) next() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.lost {
		return name
	}
	k.working = false
	return ""
}

// close tries once more, and says what is left.
func (k *keeper) close(ctx context.Context) error {
	k.mu.Lock()
	if k.stop != nil {
		k.stop()
	}
	k.mu.Unlock()
	k.done.Wait()
	var errs []error
	for name := range k.lost {
		errs = append(errs, k.remove(ctx, name))
	}
	return errors.Join(errs...)
}
