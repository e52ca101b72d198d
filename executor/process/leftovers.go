//go:build linux || darwin

package process

import (
	"cmp"

	"github.com/tracon-go/tracon/executor/internal/box"
)

// Leftovers returns what dead processes have left in the folder runtime (empty:
// that of a zero [Config]), whichever executor of this host they had: the next
// one that is started there removes it. It changes nothing.
func Leftovers(runtime string) ([]string, error) {
	return box.Leftovers(cmp.Or(runtime, box.DefaultRuntime()))
}
