//go:build linux

package process_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
)

// interpreters finds what the suite's dialects need. It fails where one is
// missing: a dialect that is left out proves nothing.
func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	found := map[string]gate.Interpreter{}
	for _, ext := range []string{"sh", "py", "js"} {
		f, err := interpreter.Find(t.Context(), ext)
		if err != nil {
			t.Fatal(err)
		}
		found[ext] = f.Interpreter()
	}
	return found
}

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
		if left := list(c.Runtime); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e, c.Runtime
}

func list(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names
}

// instances returns the names of the instances below the runtime folder.
func instances(runtime string) []string {
	var names []string
	for _, path := range list(runtime) {
		if name := filepath.Base(path); !strings.HasSuffix(name, ".lock") {
			names = append(names, name)
		}
	}
	return names
}

// leftovers returns the folders and the processes of runs below the runtime
// folder, the cgroups of runs, and children of this process.
func leftovers(runtime string) []string {
	var left []string
	for _, instance := range instances(runtime) {
		left = append(left, list(filepath.Join(runtime, instance))...)
	}
	for _, dir := range cgroups(instances(runtime)) {
		for _, run := range list(dir) {
			if info, err := os.Stat(run); err == nil && info.IsDir() {
				left = append(left, run)
			}
		}
	}
	return append(left, processes(runtime)...)
}

// cgroups returns the cgroups of the instances, wherever they lie.
func cgroups(instances []string) []string {
	var found []string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			name, ok := strings.CutPrefix(filepath.Base(path), "tracon-")
			if ok && slices.Contains(instances, name) && !slices.Contains(found, path) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// processes returns the processes that belong to runs below the runtime folder
// or are children of this one, zombies too.
func processes(runtime string) []string {
	var left []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		if len(f) < 2 {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if bytes.Contains(env, []byte("HOME="+runtime)) || strings.HasPrefix(cwd, runtime) || f[1] == strconv.Itoa(os.Getpid()) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			left = append(left, fmt.Sprintf("process %d (%s) %q", pid, f[0], line))
		}
	}
	return left
}

func TestConformance(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config process.Config
	}{
		{"with a cgroup", process.Config{}},
		{"without a cgroup", process.Config{NoCgroup: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var runtime string
			executortest.Run(t, executortest.Setup{
				New: func(executortest.T) executor.Executor {
					var e *process.Executor
					e, runtime = open(t, tc.config)
					return e
				},
				Interpreters: interpreters(t),
				Leftovers:    func() []string { return leftovers(runtime) },
				Lacks:        executortest.Lacks{Memory: true},
			})
		})
	}
}
