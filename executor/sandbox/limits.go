//go:build linux && (amd64 || arm64)

package sandbox

import (
	"math"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/interpreter"
	"golang.org/x/sys/unix"
)

// overhead is how many processes a box has beside the script's: its first one,
// and the one that made the namespaces, which ends at once.
const overhead = 2

// rlimits returns the limits of each single process. Files have none: all that a
// script can write lies in file systems of a fixed size.
func rlimits(l *box.Means, kind interpreter.Kind, want box.Limits, timeout time.Duration) []rlimit {
	list := []rlimit{
		{unix.RLIMIT_CORE, 1}, // unlike 0, this also keeps the memory from a handler of the system
		{unix.RLIMIT_CPU, uint64(math.Ceil(timeout.Seconds()*max(1, want.Processors))) + 1},
		{unix.RLIMIT_NOFILE, 256},
		{unix.RLIMIT_NPROC, uint64(want.Processes)},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_RTPRIO, 0},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_SIGPENDING, 256},
		{unix.RLIMIT_STACK, 8 << 20},
	}
	// Without a cgroup, each process alone is held to what it can write to. Address
	// space is no measure of that: threads and Node reserve far more than they use.
	// It only keeps memory that is mapped as shared, which counts to nothing else,
	// from growing without end.
	if !l.HoldsMemory() {
		list = append(list, rlimit{unix.RLIMIT_DATA, uint64(want.Memory)})
		if kind != interpreter.Node {
			list = append(list, rlimit{unix.RLIMIT_AS, uint64(want.Memory) + 4<<30})
		}
	}
	return list
}
