//go:build linux

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// programs is how much of the programs that it runs a script may have in memory beside
// what the policy allows it, in bytes: enough to take one step after the other.
const programs = 4 << 20

// A hunger is the watch over a script's memory.
type hunger struct {
	most   int64 // bytes; of what cannot be taken back
	events *os.File
	killed atomic.Bool
}

// watch watches over what is in the script's cgroup.
func watch(most int64) (*hunger, error) {
	f, err := os.Open(runGroup + "/memory.events")
	return &hunger{most: most, events: f}, err
}

// follow looks each time that the script has come to its limit, and kills it when it has
// more than it may. The kernel alone would go on for ever: it takes the script's own
// programs out of memory, reads them from the disk again for the next step, and so always
// finds something to take.
func (h *hunger) follow() {
	for {
		// What was read is no news to the next poll.
		if _, err := h.events.ReadAt(make([]byte, 1), 0); err != nil {
			panic(err) // the machine ends, and with it the script
		}
		if taken() > h.most {
			h.killed.Store(true)
			if err := os.WriteFile(runGroup+"/cgroup.kill", []byte("1"), 0); err != nil {
				panic(err)
			}
			return
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(h.events.Fd()), Events: unix.POLLPRI}}, -1); err != nil && err != unix.EINTR {
			panic(err)
		}
	}
}

// taken is how much memory of the script the kernel cannot take back, in bytes.
func taken() int64 {
	n := numbers("memory.stat")
	return n["anon"] + n["shmem"] + n["kernel"] + n["sock"] - n["slab_reclaimable"]
}

// numbers reads a file of the script's cgroup.
func numbers(file string) map[string]int64 {
	text, _ := os.ReadFile(runGroup + "/" + file)
	list := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			list[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return list
}
