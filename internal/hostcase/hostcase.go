//go:build linux

package hostcase

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
)

// Interpreters finds what the suites' dialects need. It fails where one is missing: a
// dialect that is left out proves nothing.
func Interpreters(t testing.TB) map[string]gate.Interpreter {
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

// List returns the paths of what is in the folder; none where it is not there.
func List(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// Instances returns the names of the instances below the runtime folder.
func Instances(runtime string) []string {
	var names []string
	for _, path := range List(runtime) {
		if name := filepath.Base(path); !strings.HasSuffix(name, ".lock") {
			names = append(names, name)
		}
	}
	return names
}

// Runs returns the folders of runs below the runtime folder.
func Runs(runtime string) []string {
	var left []string
	for _, name := range Instances(runtime) {
		left = append(left, List(filepath.Join(runtime, name))...)
	}
	return left
}

// Cgroups returns the cgroups of the instances, in whatever hierarchy.
func Cgroups(instances ...string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, _ fs.DirEntry, _ error) error {
		name, ok := strings.CutPrefix(filepath.Base(path), "tracon-")
		switch {
		case !ok || !strings.HasPrefix(name, "instance-"):
			return nil
		case slices.Contains(instances, name):
			found = append(found, path)
		}
		return filepath.SkipDir // nothing of an instance lies below an instance
	})
	return found
}

// Below returns the cgroups that lie below these by the pattern: those of runs.
func Below(cgroups []string, pattern string) []string {
	var found []string
	for _, dir := range cgroups {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				found = append(found, path)
			}
		}
	}
	return found
}

// Children returns the processes that this one has started, zombies too.
func Children() []string {
	var left []string
	for pid, state := range Started() {
		left = append(left, fmt.Sprintf("%s, state %s", Describe(pid), state))
	}
	return left
}

// Started returns the numbers of the processes that this one has started, zombies too,
// with the state of each.
func Started() map[int]string {
	list := map[int]string{}
	for _, path := range List("/proc") {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(path + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			list[pid] = f[0]
		}
	}
	return list
}

// Describe returns the number and the command line of the process.
func Describe(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return fmt.Sprintf("process %d %q", pid, line)
}

// InitIsItsSource holds that the first process in the folder init is what its source
// says, byte for byte, on both architectures, and small enough to be read.
func InitIsItsSource(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			assembler := map[string]string{"amd64": "x86_64-linux-gnu-as", "arm64": "aarch64-linux-gnu-as"}[arch]
			if _, err := exec.LookPath(assembler); err != nil {
				if os.Getenv("TRACON_REQUIRE") == "all" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			made := filepath.Join(t.TempDir(), arch)
			if out, err := exec.Command("init/build.sh", arch, made).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(made)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("init", arch))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("init/%s is not what init/build.sh makes of its source; run it", arch)
			}
			if len(want) > 1536 {
				t.Errorf("it has %d bytes", len(want))
			}
		})
	}
}
