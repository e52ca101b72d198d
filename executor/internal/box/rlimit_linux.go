package box

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rlimitNames are the limits of a process as /proc/PID/limits writes them.
var rlimitNames = map[int]string{
	unix.RLIMIT_CORE: "Max core file size", unix.RLIMIT_CPU: "Max cpu time", unix.RLIMIT_NOFILE: "Max open files",
	unix.RLIMIT_NPROC: "Max processes", unix.RLIMIT_MEMLOCK: "Max locked memory", unix.RLIMIT_MSGQUEUE: "Max msgqueue size",
	unix.RLIMIT_RTPRIO: "Max realtime priority", unix.RLIMIT_NICE: "Max nice priority", unix.RLIMIT_SIGPENDING: "Max pending signals",
	unix.RLIMIT_STACK: "Max stack size", unix.RLIMIT_AS: "Max address space", unix.RLIMIT_DATA: "Max data size",
}

// HasRlimit holds that a process has this limit, soft and hard, by the text of its
// /proc/PID/limits, and returns a line that says so.
func HasRlimit(text string, what int, limit uint64) (string, error) {
	name, n := rlimitNames[what], strconv.FormatUint(limit, 10)
	if limit == unix.RLIM_INFINITY {
		n = "unlimited"
	}
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	got := strings.Fields(line)
	if name == "" || len(got) < 2 || got[0] != n || got[1] != n {
		return "", fmt.Errorf("its limit %q is %q, and must be %s", name, got, n)
	}
	return name + " " + n, nil
}
