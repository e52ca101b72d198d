//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// The first process of a box is what its source says, byte for byte, on both
// architectures, and small enough to be read.
func TestInitIsItsSource(t *testing.T) { hostcase.InitIsItsSource(t) }

// numbersOf are the system calls of the test below.
var numbersOf = map[string]struct{ write, getpid, exit, clone, kill, close, pause, getppid uintptr }{
	"amd64": {1, 39, 231, 56, 62, 3, 34, 110},
	"arm64": {64, 172, 94, 220, 129, 57, 73, 173}, // ppoll, which waits for nothing for ever
}

// runInit runs a program in the first process of the architecture, without a box,
// and returns what it says, and its exit code.
func runInit(t *testing.T, arch string, p *program, apart bool) ([]message, int) {
	t.Helper()
	argv := []string{filepath.Join(t.TempDir(), "init")}
	text, err := os.ReadFile(filepath.Join("init", arch))
	if err != nil {
		t.Fatal(err)
	}
	if err := execfile.Write(argv[0], bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if arch != runtime.GOARCH {
		qemu, err := exec.LookPath("qemu-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch])
		if err != nil {
			if os.Getenv("TRACON_REQUIRE") == "all" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		argv = append([]string{qemu}, argv...)
	}
	image, err := p.seal()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	ours, theirs, err := statusSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{theirs, image}
	if apart { // in a pid namespace of its own
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	var said []message
	c := &child{status: ours}
	for {
		m, err := c.hear()
		if err != nil {
			break
		}
		said = append(said, m)
	}
	_ = cmd.Wait()
	return said, cmd.ProcessState.ExitCode()
}

// The first process makes the calls in their order, stores and loads results,
// branches, stops at a result that must not be, and reaps, on both architectures.
func TestInitRunsPrograms(t *testing.T) {
	for arch, nr := range numbersOf {
		t.Run(arch, func(t *testing.T) {
			t.Run("results", func(t *testing.T) {
				p := newProgram(frameBase)
				message := make([]byte, 16)
				message[0] = 'P'
				pid, failed := p.record(message), p.record(message)
				p.call(nr.getpid).into(variable(pid.n + 4))
				p.call(nr.close, number(99)).into(variable(failed.n + 8)).mayFail()
				p.call(nr.write, number(statusFD), pid, number(16)).must(16)
				p.call(nr.write, number(statusFD), failed, number(16)).must(16)
				fd := p.variable()
				p.call(nr.write, number(statusFD), pid, number(16)).into(fd)
				p.call(nr.exit, fd.value())
				said, code := runInit(t, arch, p, false)
				if len(said) != 3 || int(said[0].number) != said[0].pid || int32(said[1].value) != -9 || code != 16 {
					t.Errorf("got %+v and exit code %d", said, code)
				}
			})
			t.Run("a result that must not be", func(t *testing.T) {
				for _, tc := range []struct {
					step func(p *program) *step
					want int64
				}{
					{func(p *program) *step { return p.call(nr.close, number(99)) }, -9},
					{func(p *program) *step { return p.call(nr.getpid).must(0) }, 0}, // want: its number
				} {
					p := newProgram(frameBase)
					p.stage = "here"
					p.call(nr.getpid)
					at := tc.step(p)
					p.call(nr.exit, number(0))
					said, code := runInit(t, arch, p, false)
					if len(said) == 1 && tc.want == 0 {
						tc.want = int64(said[0].pid)
					}
					if len(said) != 1 || said[0].tag != 'F' || p.at(said[0].number) != at || said[0].value != tc.want || code != 125 {
						t.Errorf("got %+v and exit code %d", said, code)
					}
				}
			})
			// Not in a pid namespace of its own, it must not be let stop what is left: so
			// here nothing is.
			t.Run("a child", func(t *testing.T) {
				p := newProgram(frameBase)
				child := p.variable()
				fork := p.branchFrom(nr.clone, number(17)).into(child)
				p.call(nr.exit, child.value())
				message := make([]byte, 16)
				message[0] = 'P'
				fork.to = p.call(nr.write, number(statusFD), p.bytes(message), number(16))
				p.call(nr.exit, number(7))
				said, _ := runInit(t, arch, p, false)
				if len(said) != 1 || said[0].tag != 'P' {
					t.Errorf("got %+v", said)
				}
			})
			t.Run("reaping", func(t *testing.T) { reaps(t, arch) })
		})
	}
}

// reaps holds that the first process reaps, stops what is left, and tells of both.
func reaps(t *testing.T, arch string) {
	nr := numbersOf[arch]
	p := newProgram(frameBase)
	other, main := p.variable(), p.variable()
	p.call(nr.getpid).must(1)
	sleeper := p.branchFrom(nr.clone, number(17)).into(other)
	fork := p.branchFrom(nr.clone, number(17)).into(main)
	p.call(reap, main.value())
	sleeper.to = p.call(nr.pause, number(0), number(0), number(0), number(0), number(0))
	p.call(nr.exit, number(1))
	fork.to = p.call(nr.exit, number(9))
	said, _ := runInit(t, arch, p, true)
	if len(said) != 1 || said[0].tag != 'D' || said[0].number != 1 || syscall.WaitStatus(said[0].value).ExitStatus() != 9 {
		t.Errorf("got %+v", said)
	}
}
