package tracon

import (
	"log/slog"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/process"
)

// newDefault makes the platform's default executor: a plain local process. On
// Linux the sandbox takes its place once it is built.
func newDefault(log *slog.Logger) (*process.Executor, error) {
	return process.New(process.Config{Logger: log})
}

// isDefault reports whether e, or what nil stands for, is the platform's default.
func isDefault(e executor.Executor) bool {
	_, plain := e.(*process.Executor)
	return e == nil || plain
}
