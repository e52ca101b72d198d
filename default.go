package tracon

import (
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
)

// isDefault reports whether e, or what nil stands for, is one of the built-in
// executors that run scripts on this very host. Whoever requires a custom one
// wants them to run elsewhere.
func isDefault(e executor.Executor) bool {
	switch e.(type) {
	case nil, *process.Executor, *sandbox.Executor:
		return true
	}
	return false
}
