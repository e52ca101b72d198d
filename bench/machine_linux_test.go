//go:build amd64

package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/hostcase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// machineKernel says where the package of a kernel for machines is.
const machineKernel = "TRACON_MICROVM_KERNEL"

// BenchmarkMachine compares a script in a virtual machine that is booted for it, restored
// for it, and was restored before, with a bare start, and with gVisor where that is here:
// as BenchmarkStart does. Then it tells the processor time of each, which others on a busy
// host change less than how long it takes (gVisor's is not all its caller's), and the
// memory of 1, 2 and 4 machines that wait.
func BenchmarkMachine(b *testing.B) {
	deb := os.Getenv(machineKernel)
	if deb == "" || os.Geteuid() != 0 {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			b.Fatalf("machines need root, and the package of a kernel in %s", machineKernel)
		}
		b.Logf("left out: machines need root, and the package of a kernel in %s", machineKernel)
		return
	}
	found, err := interpreter.Find(b.Context(), "py")
	if err != nil {
		b.Fatal(err)
	}
	s := start{dir: b.TempDir(), env: []string{"PATH=" + interpreter.SearchPath, "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"}}
	s.argv = append(interpreter.Command("py", found.Path), "main.py")
	if err := os.WriteFile(filepath.Join(s.dir, "main.py"), []byte("pass\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	all := []*contestant{s.bare()}
	if gvisor, err := contained("runsc", script{found.Interpreter(), "py", "pass\n"})(b); err == nil {
		all = append(all, gvisor)
	} else if errors.Is(err, exec.ErrNotFound) && os.Getenv("TRACON_REQUIRE") != "all" {
		b.Logf("left out: %v", err)
	} else {
		b.Fatal(err)
	}
	base, what := machineBase(b, deb)
	open := func(name string, c microvm.Config) (*microvm.Executor, *contestant) {
		c.Kit, c.Images, c.Runtime = filepath.Join(base, "kit"), image.New(filepath.Join(base, "images")), filepath.Join(b.TempDir(), "run")
		e, err := microvm.New(c)
		if err != nil {
			b.Fatal(err)
		}
		return e, executed(b, contestant{name: name, walls: "a machine of its own, and a monitor with what a box has around it"}, e, what)
	}
	_, cold := open("machine-booted", microvm.Config{Snapshots: -1, Ahead: -1})
	_, restored := open("machine-restored", microvm.Config{Ahead: -1})
	e, ahead := open("machine-ahead", microvm.Config{Ahead: 2})
	all = append(all, cold, restored, ahead)
	waits := func() {
		if e.Waiting() > 0 {
			return
		}
		for range 2 { // who calls twice is expected a third time
			if err := ahead.run(); err != nil {
				b.Fatal(err)
			}
		}
		await(b, e, 1)
	}
	waits()
	spent := map[string][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		for k := range all {
			c := all[(i+k)%len(all)]
			waits() // also for the others, so that none is measured while a machine is made
			begin, before := time.Now(), processorTime(b)
			if err := c.run(); err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			c.took = append(c.took, time.Since(begin))
			spent[c.name] = append(spent[c.name], processorTime(b)-before)
			time.Sleep(rest)
		}
	}
	b.ReportMetric(0, "ns/op")
	report(b, all)
	for _, c := range all {
		slices.Sort(spent[c.name])
		b.Logf("processor time of %s: %s by half", c.name, spent[c.name][len(spent[c.name])/2])
	}
	if err := e.Close(); err != nil { // those of others that wait are not counted
		b.Fatal(err)
	}
	together(b, open, what)
}

// await returns when n machines wait for their calls. None waits for longer than a minute.
func await(b *testing.B, e *microvm.Executor, n int) {
	b.Helper()
	for until := time.Now().Add(time.Minute); e.Waiting() < n; time.Sleep(rest) {
		if time.Now().After(until) {
			b.Fatalf("%d machines wait, and not %d: none could be made, or this host is too busy", e.Waiting(), n)
		}
	}
}

// machineBase makes what machines are started from, with a runtime that has this host's
// Python.
func machineBase(b *testing.B, deb string) (dir string, what script) {
	b.Helper()
	dir = b.TempDir()
	root := filepath.Join(dir, "root")
	if err := errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, rootfs.Python...)); err != nil {
		b.Fatal(err)
	}
	made, err := image.New(filepath.Join(dir, "images")).ImportFolder(b.Context(), root, image.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer made.Image.Close()
	if _, err := kit.Prepare(b.Context(), filepath.Join(dir, "kit"), kit.Source{Package: deb}); err != nil {
		b.Fatal(err)
	}
	if _, err := kit.AddDisk(b.Context(), filepath.Join(dir, "kit"), made.Image); err != nil {
		b.Fatal(err)
	}
	found, err := interpreter.Inside("py", "copy", made.Image, "")
	if err != nil {
		b.Fatal(err)
	}
	return dir, script{found.Interpreter(), "py", "pass\n"}
}

// together tells the memory of 1, 2 and 4 machines that wait for their calls at the same
// time, each for a tenant of its own. They share what none of them has changed of the saved
// machine, which is all there once, as is what they start from, in files of this process:
// so their shared pages are counted as those files have them, and not by who maps them.
func together(b *testing.B, open func(string, microvm.Config) (*microvm.Executor, *contestant), what script) {
	b.Helper()
	before := hostcase.MemoryFiles(b)
	e, c := open("machines that wait", microvm.Config{Ahead: 4, AheadBytes: 8 << 30})
	all := []*contestant{c}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nmachines that wait\tall monitors, PSS\ttheir programs\tof each alone\tfiles in memory\tin all\tfor each, MiB\n")
	for _, n := range []int{1, 2, 4} {
		for len(all) < n {
			all = append(all, executed(b, contestant{}, e, what))
		}
		await(b, e, n)
		monitors := hostcase.Started()
		if len(monitors) != n {
			b.Fatalf("%d monitors, want %d", len(monitors), n)
		}
		var pss, alone, programs int64
		for pid := range monitors {
			m, err := hostcase.Rollup(pid)
			if err != nil {
				b.Fatal(err)
			}
			pss, alone, programs = pss+m["Pss"], alone+m["Pss_Anon"], programs+m["Pss_File"]
		}
		files := hostcase.MemoryFiles(b) - before
		sum := alone + programs + files
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", n, hostcase.MiB(pss), hostcase.MiB(programs), hostcase.MiB(alone/int64(n)), hostcase.MiB(files), hostcase.MiB(sum), hostcase.MiB(sum/int64(n)))
	}
	w.Flush()
	b.Log(table.String())
}
