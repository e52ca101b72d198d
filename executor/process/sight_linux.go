package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor"
)

// A sight is what was seen of a process that was started as a script is.
type sight struct {
	env, fds []string
	want     []string
	core     bool // core files are forbidden
	err      error
}

// look waits until the kernel has laid out the environment, which comes behind the
// closing of files, and the loader has closed what it reads. On a busy host that
// takes a while; only where something is amiss is it waited for in vain.
func look(pid int, want []string) (s sight) {
	for range 1000 {
		if s = glance(pid, want); s.environment().Stands && s.descriptors().Stands && s.coreFiles().Stands {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return s
}

var standard = []string{"0", "1", "2"}

func glance(pid int, want []string) (s sight) {
	s.want = want
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	s.env = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	entries, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, e := range entries {
		s.fds = append(s.fds, e.Name())
	}
	limits, err3 := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	for line := range strings.Lines(string(limits)) {
		if f, ok := strings.CutPrefix(line, "Max core file size"); ok {
			s.core = slices.Equal(strings.Fields(f), []string{"1", "1", "bytes"})
		}
	}
	s.err = errors.Join(err, err2, err3)
	return s
}

func (s sight) environment() executor.Wall {
	w := executor.Wall{Name: "environment", Stands: s.err == nil && slices.Equal(s.env, s.want), Proof: "a process was started, and its environment was the fixed set alone"}
	if !w.Stands {
		w.Proof, w.Remedy = "the environment of a process could not be read", "mount /proc"
	}
	return w
}

func (s sight) descriptors() executor.Wall {
	w := executor.Wall{Name: "descriptors", Stands: s.err == nil && slices.Equal(s.fds, standard), Proof: "a process was started, and had the files 0, 1 and 2 open alone"}
	if !w.Stands {
		w.Proof, w.Remedy = fmt.Sprintf("a process was started, and had the files %v open", s.fds), "open files with close-on-exec in the embedding program"
	}
	return w
}

func (s sight) coreFiles() executor.Wall {
	w := executor.Wall{Name: "core files", Stands: s.err == nil && s.core, Proof: "a process was started, and its limit of core files was 1 byte, which also keeps its memory from a handler of the system"}
	if !w.Stands {
		w.Proof, w.Remedy = "the limit of a process could not be set, or not be read", "mount /proc, and allow prlimit"
	}
	return w
}
