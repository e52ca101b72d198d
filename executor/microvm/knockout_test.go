//go:build linux && amd64

package microvm

import (
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"github.com/tracon-go/tracon/internal/hostcase"
	"golang.org/x/sys/unix"
)

// A still monitor does nothing: it has taken a filter of system calls, or has none.
type still struct {
	shell
	program string
}

func (still) path() string            { return "/usr/bin/perl" }
func (s still) argv(machine) []string { return []string{"perl", "-e", s.program} }

const (
	waits    = `$| = 1; print "begun\n"; sleep 600;`
	filtered = `$f = pack("SCCL", 6, 0, 0, 0x7fff0000); syscall(157, 22, 2, pack("Sx6P", 1, $f)) == 0 or die $!; ` + waits
)

// B2: a monitor that lacks a wall is found out from outside, whichever wall it is.
func TestKnockedOut(t *testing.T) {
	if !asRoot(t) {
		return
	}
	ids, err := box.FindIdentities()
	if err != nil {
		t.Fatal(err)
	}
	means := box.OpenMeans("test-"+rand.Text(), box.Limits{Processors: 1})
	t.Cleanup(func() {
		if err := means.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// What is knocked out.
	type wall struct {
		sys     *syscall.SysProcAttr
		group   *box.Group
		program *string
		v       *vm
	}
	cases := []struct {
		name  string
		knock func(wall)
		want  string // empty: it is as it must be
	}{
		{"none", func(wall) {}, ""},
		{"the user", func(w wall) { w.sys.Credential.Uid++ }, "its Uid is"},
		{"the group", func(w wall) { w.sys.Credential.Gid++ }, "its Gid is"},
		{"root", func(w wall) { w.sys.Credential = nil }, "its CapEff is"},
		{"a right", func(w wall) { w.sys.AmbientCaps = []uintptr{unix.CAP_NET_RAW} }, "its CapAmb is"},
		{"the filter", func(w wall) { *w.program = waits }, "its Seccomp is"},
		{"the files", func(w wall) { w.v.files = nil }, "it has the file"},
	}
	for kind, flag := range namespaces {
		cases = append(cases, struct {
			name  string
			knock func(wall)
			want  string
		}{"namespace " + kind, func(w wall) { w.sys.Cloneflags &^= flag }, "it has no " + kind + " namespace"})
	}
	if means.Count() == 0 {
		t.Log("there are no cgroups here, without which no machine is started")
	} else {
		cases = append(cases, struct {
			name  string
			knock func(wall)
			want  string
		}{"the cgroups", func(w wall) { *w.group = box.Group{} }, "it is in 0 cgroups"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, err := ids.Take()
			if err != nil {
				t.Fatal(err)
			}
			defer ids.Give(id)
			v := &vm{id: id, machine: machine{kernel: f}}
			if v.files, err = inodes(v.machine.files()); err != nil {
				t.Fatal(err)
			}
			if v.group, err = means.NewRun("t", "machine-"+rand.Text(), means.Of(64<<20, 16)); err != nil {
				t.Fatal(err)
			}
			group, program := v.group, filtered
			sys, err := attributes(v.machine, id)
			if err != nil {
				t.Fatal(err)
			}
			c.knock(wall{sys, &group, &program, v})
			mon := still{program: program}
			rules, err := landlock(v.machine)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(rules)
			if v.child, err = behind(mon, v.machine, group, sys, rules); err != nil {
				t.Fatal(err)
			}
			v.child.heard(t, "begun")
			e := &Executor{monitor: mon, limits: means, kit: &kit.Kit{}}
			seen, err := e.inspect(v)
			if c.want == "" && (err != nil || !strings.Contains(seen, "Seccomp 2")) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("B2: got %q, %v; want %q", seen, err, c.want)
			}
			v.child.kill()
			if err := v.group.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

// B2: so is one that could gain rights.
func TestKnockedOutNoNewPrivileges(t *testing.T) {
	if !asRoot(t) {
		return
	}
	ids, err := box.FindIdentities()
	if err != nil {
		t.Fatal(err)
	}
	id, err := ids.Take()
	if err != nil {
		t.Fatal(err)
	}
	mon := still{program: waits}
	cmd := exec.Command(mon.path(), mon.argv(machine{})[1:]...)
	if cmd.SysProcAttr, err = attributes(machine{}, id); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr.Pdeathsig = 0 // it does not end with some thread
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	e := &Executor{monitor: mon, kit: &kit.Kit{}}
	if _, err := e.inspect(&vm{id: id, child: &child{process: cmd.Process}}); err == nil || !strings.Contains(err.Error(), "its NoNewPrivs is") {
		t.Errorf("B2: got %v", err)
	}
}

// The walls around a monitor stand for an ordinary user too, who is root of a user
// namespace with identities to give away, and are looked at alike.
func TestConfinedWithoutRoot(t *testing.T) {
	if !asRoot(t) {
		return
	}
	hostcase.TestsRootless(t, hostcase.Delegate(t, hostcase.Ordinary), "^(TestTakenOver|TestKnockedOut|TestKnockedOutNoNewPrivileges|TestSameFiles)$")
}
