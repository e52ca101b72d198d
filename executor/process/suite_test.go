//go:build linux

package process_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/internal/hostcase"
	"golang.org/x/sys/unix"
)

// open returns an executor in a runtime folder of its own.
func open(t testing.TB, c process.Config) (*process.Executor, string) {
	t.Helper()
	if c.Runtime == "" {
		c.Runtime = filepath.Join(t.TempDir(), "run")
	}
	e, err := process.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := hostcase.List(c.Runtime); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e, c.Runtime
}

// inMemory returns a runtime folder in memory, where scripts are usually staged,
// or one on disk where there is none or nothing can be started from it.
func inMemory(t testing.TB) string {
	t.Helper()
	const shared = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(shared, &st); err != nil || st.Flags&unix.ST_NOEXEC != 0 {
		return filepath.Join(t.TempDir(), "run")
	}
	dir, err := os.MkdirTemp(shared, "tracon-test-")
	if err != nil {
		return filepath.Join(t.TempDir(), "run")
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "run")
}

// leftovers returns the folders and the processes of runs below the runtime
// folder, the cgroups of runs, and children of this process.
func leftovers(runtime string) []string {
	left := append(hostcase.Runs(runtime), hostcase.Below(hostcase.Cgroups(hostcase.Instances(runtime)...), "*")...)
	return append(left, processes(runtime)...)
}

// processes returns the processes that belong to runs below the runtime folder.
func processes(runtime string) []string {
	var left []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if bytes.Contains(env, []byte("HOME="+runtime)) || strings.HasPrefix(cwd, runtime) {
			left = append(left, hostcase.Describe(pid))
		}
	}
	return left
}

// Each dialect has an executor of its own, and they run side by side: what is
// left is looked for in the folder of each.
func TestConformance(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config process.Config
	}{
		{"on disk, with a cgroup", process.Config{}},
		{"in memory, without a cgroup", process.Config{NoCgroup: true}},
	} {
		for _, d := range executortest.Dialects() {
			t.Run(tc.name+"/"+d.Name, func(t *testing.T) {
				t.Parallel()
				var runtime string
				config := tc.config // not shared with the other dialects
				if config.NoCgroup {
					config.Runtime = inMemory(t)
				}
				executortest.Run(t, executortest.Setup{
					New: func(executortest.T) executor.Executor {
						var e *process.Executor
						e, runtime = open(t, config)
						return e
					},
					Interpreters: hostcase.Interpreters(t),
					Dialects:     []executortest.Dialect{d},
					Leftovers:    func() []string { return leftovers(runtime) },
					Lacks:        executortest.Lacks{Memory: true},
				})
			})
		}
	}
}
