//go:build !linux

package tracon

import (
	"log/slog"

	"github.com/tracon-go/tracon/executor/process"
)

// newDefault makes the platform's default executor: a plain local process.
func newDefault(log *slog.Logger) (*process.Executor, error) {
	return process.New(process.Config{Logger: log})
}
