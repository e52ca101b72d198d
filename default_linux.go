package tracon

import (
	"log/slog"

	"github.com/tracon-go/tracon/executor/sandbox"
)

// newDefault makes the platform's default executor: the sandbox. Where a wall
// cannot stand it fails and says which; it never falls back to less (B2).
func newDefault(log *slog.Logger) (*sandbox.Executor, error) {
	return sandbox.New(sandbox.Config{Logger: log})
}
