package cli

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepInherited marks every descriptor beyond the standard streams to be closed
// when a program is started: what a shell or a supervisor left open to us is no
// script's to have. A kernel before 5.11 cannot; the posture then tells.
func keepInherited() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }
