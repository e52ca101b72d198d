package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/tracon-go/tracon/internal/config"
)

// maxOld is how many generations may live on when another reload is asked for.
const maxOld = 2

// retired is a generation before the one that there is.
type retired struct {
	force func() // has it end, whatever goes on in it
	ended <-chan struct{}
	last  bool // it was given the time of drain
}

// retire ends a generation when the last of its requests and runs has, or the server,
// or when it is forced to.
func (s *server) retire(g *generation) {
	ctx, force := context.WithCancel(s.life)
	ended := make(chan struct{})
	s.retired = append(s.retired, retired{force: force, ended: ended})
	s.retiring.Go(func() {
		defer close(ended)
		defer force()
		if err := g.end(ctx); err != nil {
			s.log.Error("what was before the reload did not end well", "err", err)
		}
	})
}

// old returns how many generations live on beside the one that there is.
func (s *server) old() int {
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool {
		select {
		case <-r.ended:
			return true
		default:
			return false
		}
	})
	return len(s.retired)
}

// crowded puts a reload off until the oldest generation has ended, whose runs have the
// time of drain from now on: a script that runs for hours keeps nobody from changing
// the configuration, and no flood of signals makes generations without a bound.
func (s *server) crowded() {
	s.waits = true
	if first := &s.retired[0]; !first.last {
		first.last = true
		time.AfterFunc(s.drain(), first.force)
		s.log.Warn("the reload waits for runs of the configurations before; the oldest are stopped when the time of drain is over", "drain", s.drain().String())
	}
}

// reload reads the configuration again. It holds as a whole or not at all: what is
// wrong with it is told to the log, and the one before stays.
func (s *server) reload(ctx context.Context) {
	s.notify.tell("RELOADING=1")
	if s.old() >= maxOld {
		s.crowded()
		return
	}
	s.waits = false
	defer s.notify.tell("READY=1")
	c, err := s.reread()
	if err != nil {
		s.log.Error("not reloaded; the configuration before stays", "err", err)
		return
	}
	p, err := s.prepare(ctx, c)
	if err != nil {
		s.log.Error("not reloaded; the configuration before stays", "err", err)
		return
	}
	s.put(p)
	s.log.Info("reloaded")
}

// rereadOnly takes the configuration for the next try to open the store.
func (s *server) rereadOnly() {
	c, err := s.reread()
	if err != nil {
		s.log.Error("not reloaded; the configuration before stays", "err", err)
		return
	}
	s.c = c
}

// reread reads and checks the configuration. What holds from the start to the end of
// a process stays as it was, and is told.
func (s *server) reread() (*config.Config, error) {
	c, err := s.o.Load()
	if err != nil {
		return nil, err
	}
	if kept := c.KeepFromStart(s.c); len(kept) > 0 {
		s.log.Warn("these settings changed and hold only after a restart", "settings", kept)
	}
	return c, checkServe(c, time.Now())
}
