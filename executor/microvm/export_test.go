//go:build microvm && linux && amd64

package microvm

import "time"

// SetBootTime changes how long a machine may take until its agent is heard.
func SetBootTime(e *Executor, d time.Duration) { e.config.BootTime = d }
