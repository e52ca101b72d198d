package daemon

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/internal/config"
)

// maxOld is how many generations may live on when another reload is asked for.
const maxOld = 2

// reload reads the configuration again. It holds as a whole or not at all: what is
// wrong with it is told to the log, and the one before stays.
func (s *server) reload(ctx context.Context) {
	s.notify.tell("RELOADING=1")
	defer s.notify.tell("READY=1")
	if s.old.Load() >= maxOld {
		s.log.Error("not reloaded: runs of the configurations before still go on; try again later")
		return
	}
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
