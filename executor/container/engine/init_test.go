//go:build linux && (amd64 || arm64)

package engine

import (
	"testing"

	"github.com/tracon-go/tracon/internal/hostcase"
)

// The first process of an engine's container is what its source says, byte for byte, on both
// architectures, and small enough to be read.
func TestInitIsItsSource(t *testing.T) { hostcase.InitIsItsSource(t) }
