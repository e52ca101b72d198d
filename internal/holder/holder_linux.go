package holder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// self is the number of the process, where that number counts, and when it started: by
// these no later process is taken for it.
var self = sync.OnceValue(func() string {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	_, started, err := stat(os.Getpid())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s %s", os.Getpid(), space, started)
})

func dead(text string) bool {
	words, mine := strings.Fields(text), strings.Fields(self())
	if len(words) != 3 || len(mine) != 3 || words[1] != mine[1] {
		return false
	}
	pid, err := strconv.Atoi(words[0])
	if err != nil || pid <= 0 {
		return false
	}
	state, started, err := stat(pid)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) // it ended while it was read
	}
	return started != words[2] || state == "Z" || state == "X"
}

// stat returns the state of the process and when it started, in ticks since the machine did.
func stat(pid int) (state, started string, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The name may have blanks and brackets in it.
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 20 {
		return "", "", fmt.Errorf("holder: /proc/%d/stat has %d fields", pid, len(f))
	}
	return f[0], f[19], nil
}
