//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// ahead runs until a run was served a box that had been made ahead, and returns
// what came of it. A host on which something is mounted meanwhile makes some runs
// miss it, and only that does.
func ahead(t *testing.T, e *sandbox.Executor, run func() executor.Result) executor.Result {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		before := sandbox.Served(e)
		res := run()
		if sandbox.Served(e) > before {
			return res
		}
		sandbox.Made(e)
	}
	t.Fatal("for a minute, no run was served a box that had been made ahead")
	return executor.Result{}
}

// of makes the order one of the tenant.
func of(tenant string, o executortest.Order) executortest.Order {
	o.Tenant = tenant
	return o
}

var (
	identity = regexp.MustCompile(`[0-9]{4,}`)
	owner    = regexp.MustCompile(`[ug]id=[0-9]+`)
	limits   = []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max", "pids.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"}
)

// walls returns all that the kernel tells of what is around a process, without what
// is another for each run: numbers of processes, namespaces, devices and mounts, the
// identity on the host, and names of cgroups, which lie below those given.
func walls(t *testing.T, pid int, instances []string) (list []string) {
	t.Helper()
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	proc := fmt.Sprintf("/proc/%d/", pid)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for line := range strings.Lines(read(proc + "mountinfo")) {
		say("mount %s", owner.ReplaceAllString(strings.Join(strings.Fields(line)[3:], " "), "N"))
	}
	for _, name := range []string{"limits", "oom_score_adj", "setgroups", "environ", "personality"} {
		if text, err := os.ReadFile(proc + name); err == nil {
			say("%s %s", name, text)
		}
	}
	for _, name := range []string{"uid_map", "gid_map"} {
		say("%s %s", name, identity.ReplaceAllString(strings.Join(strings.Fields(read(proc + name))[:1], " "), "N")+" of 1")
	}
	parent := ""
	status := func(who, name string) {
		for line := range strings.Lines(read(name)) {
			key, value, _ := strings.Cut(line, ":")
			switch key {
			case "PPid":
				parent = strings.TrimSpace(value)
			case "Name", "Umask", "Groups", "Threads", "SigQ", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters":
				say("%s: %s %s", who, key, strings.TrimSpace(value))
			}
		}
	}
	status("the script's process", proc+"status")
	status("the first process", "/proc/"+parent+"/status")
	// All hierarchies have the same path, below the cgroup of the executor.
	_, own, _ := strings.Cut(read(proc+"cgroup"), "/tenant-")
	own, _, _ = strings.Cut(own, "\n")
	for _, dir := range instances {
		for _, name := range limits {
			if text, err := os.ReadFile(filepath.Join(dir, "tenant-"+own, name)); err == nil {
				say("cgroup %s %s", name, text)
			}
		}
	}
	for _, name := range namesIn(t, proc+"fd") {
		to, err := os.Readlink(proc + "fd/" + name)
		if err != nil {
			t.Error(err)
		}
		say("file %s %s", name, identity.ReplaceAllString(to, "N"))
	}
	for _, dir := range []string{"", "dev", "etc", "skill", "inputs", "outputs", "tmp", "tmp/home", "dev/shm"} {
		at := proc + "root/" + dir
		for _, name := range namesIn(t, at) {
			info, err := os.Lstat(at + "/" + name)
			if err != nil {
				t.Error(err)
				continue
			}
			size := info.Size()
			if info.IsDir() {
				size = 0 // of a folder of the host
			}
			say("/%s/%s %v %d", dir, name, info.Mode(), size)
		}
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(proc+"root/skill", &st); err != nil {
		t.Error(err)
	}
	say("space %d of %d, files %d of %d", st.Bfree, st.Blocks, st.Ffree, st.Files)
	slices.Sort(list)
	return list
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// B2: a box that was made ahead has the walls of one that was made for its call, by
// all that the kernel tells of it, and the same digest of its posture.
func TestBoxMadeAheadHasTheSameWalls(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*executortest.Order)
	}{
		{"as ever", func(*executortest.Order) {}},
		{"with loopback", func(o *executortest.Order) { o.Policy.Network = gate.Loopback }},
		{"with files", func(o *executortest.Order) {
			o.Inputs = []bundle.File{{Path: "a/b", Data: make([]byte, 100<<10)}}
			o.Files = append(o.Files, bundle.File{Path: "lib/x", Data: []byte("x")})
		}},
		{"with a skill that has the names", func(o *executortest.Order) {
			o.Files = append(o.Files, bundle.File{Path: "inputs/x", Data: []byte("1")}, bundle.File{Path: "outputs", Data: []byte("2")})
		}},
		{"with other limits", func(o *executortest.Order) {
			o.Policy.Memory, o.Policy.Processes, o.Policy.Timeout = 64<<20, 9, 5*time.Minute
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, runtime := open(t, sandbox.Config{})
			var instances []string
			for _, path := range hostcase.List(runtime) {
				instances = append(instances, hostcase.Cgroups(filepath.Base(path))...)
			}
			w := executortest.NewWorld(hostcase.Interpreters(t))
			o := of("one", script("sh", "echo hi\n"))
			tc.change(&o)
			var seen []string
			sandbox.Look(e, func(pid int) { seen = walls(t, pid, instances) })
			run := func() executor.Result {
				t.Helper()
				res, err := e.Execute(t.Context(), admit(t, w, o))
				if err != nil || res.Ending != executor.Exited(0) || string(res.Stdout) != "hi\n" {
					t.Fatal(res.Ending, err, string(res.Stdout), string(res.Stderr))
				}
				return res
			}
			fresh := run()
			want := seen
			if sandbox.Served(e) != 0 || len(want) < 80 {
				t.Fatalf("of a box made for its call: %q", want)
			}
			got := ahead(t, e, run)
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("a box made ahead differs (-made for its call +made ahead):\n%s", diff)
			}
			if got.PostureDigest != fresh.PostureDigest {
				t.Errorf("the digests are %v and %v", fresh.PostureDigest, got.PostureDigest)
			}
		})
	}
}

// B3, R20: a box serves one run, of one tenant. What a run wrote, no later one
// finds, and when the executor is closed none is left (see open).
func TestBoxMadeAheadServesOnce(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	run := func(tenant string) executor.Result {
		t.Helper()
		o := of(tenant, script("sh", "cat /skill/left /inputs/left /outputs/left /tmp/left /tmp/home/left /dev/shm/left 2>/dev/null\n"+
			"for d in /skill /inputs /outputs /tmp /tmp/home /dev/shm; do echo x >$d/left || echo no; done; sleep 60 & :\n"))
		res, err := e.Execute(t.Context(), admit(t, w, o))
		if err != nil || res.Ending != executor.Exited(0) || len(res.Stdout) > 0 {
			t.Fatalf("%v, %v: %q, %s", res.Ending, err, res.Stdout, res.Stderr)
		}
		return res
	}
	for range 10 {
		for _, tenant := range []string{"one", "another"} {
			ahead(t, e, func() executor.Result { return run(tenant) })
		}
	}
	sandbox.Made(e)
	if n := len(sandbox.Waiting(e)); n > sandbox.DefaultAhead {
		t.Errorf("%d boxes wait", n)
	}
	before := sandbox.Served(e)
	run("a third")
	if sandbox.Served(e) != before {
		t.Error("a tenant was served the box of another")
	}
	if found := left(e, runtime); len(found) > 0 {
		t.Errorf("left %q", found)
	}
}

// B2: a folder that was replaced on the host after a box was made is shown as it is.
func TestBoxMadeAheadShowsTheHostOfNow(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "tracon-") // not below /tmp: a box has its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	shown := filepath.Join(dir, "shown")
	put := func(text string) {
		t.Helper()
		err := os.Mkdir(shown, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(shown, "x"), []byte(text), 0o644)
		}
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("before\n")
	e, _ := open(t, sandbox.Config{Folders: []string{shown}})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	run := func(want string) executor.Result {
		t.Helper()
		res, err := e.Execute(t.Context(), admit(t, w, of("one", script("sh", "cat "+shown+"/x\n"))))
		if err != nil || string(res.Stdout) != want {
			t.Fatalf("got %q, %v, want %q: %s", res.Stdout, err, want, res.Stderr)
		}
		return res
	}
	ahead(t, e, func() executor.Result { return run("before\n") })
	sandbox.Made(e)
	if err := os.Rename(shown, shown+"-before"); err != nil {
		t.Fatal(err)
	}
	put("after\n")
	before := sandbox.Served(e)
	run("after\n")
	if sandbox.Served(e) != before {
		t.Error("a box of before the change served")
	}
	ahead(t, e, func() executor.Result { return run("after\n") })
}

// B3: a box that was killed while it waited fails no call: it is made again.
func TestBoxMadeAheadIsKilled(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	run := func() executor.Result {
		t.Helper()
		res, err := e.Execute(t.Context(), admit(t, w, of("one", script("sh", "echo hi\n"))))
		if err != nil || string(res.Stdout) != "hi\n" {
			t.Fatalf("got %q, %v: %s", res.Stdout, err, res.Stderr)
		}
		return res
	}
	ahead(t, e, run)
	sandbox.Made(e)
	for _, pid := range sandbox.Waiting(e) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if found := left(e, runtime); len(found) > 0 {
		t.Errorf("left %q", found)
	}
}

// B3, B10: boxes are no longer made ahead where that is switched off.
func TestNoBoxesAhead(t *testing.T) {
	e, runtime := open(t, sandbox.Config{Ahead: -1})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	for range 4 {
		if _, err := e.Execute(t.Context(), admit(t, w, of("one", script("sh", "true\n")))); err != nil {
			t.Fatal(err)
		}
	}
	if found := leftovers(runtime); sandbox.Served(e) > 0 || len(found) > 0 {
		t.Errorf("%d calls were served, and there is %q", sandbox.Served(e), found)
	}
}

// All of it holds for an ordinary user.
func TestBoxesAheadAsAnotherUser(t *testing.T) { asNobody(t, true, "^TestBoxMadeAhead") }
