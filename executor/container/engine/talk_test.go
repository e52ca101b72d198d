//go:build linux && (amd64 || arm64)

package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/internal/execfile"
	"golang.org/x/sys/unix"
)

// start starts the first process for an architecture, in namespaces of its own: it stops
// all that it sees.
func start(t *testing.T, arch string) (stdin io.WriteCloser, stdout, stderr io.Reader, cmd *exec.Cmd) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "init")
	text, err := os.ReadFile(filepath.Join("init", arch))
	if err == nil {
		err = execfile.Write(program, bytes.NewReader(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(program)
	if arch != runtime.GOARCH {
		interpreter, err := exec.LookPath("qemu-" + map[string]string{"arm64": "aarch64", "amd64": "x86_64"}[arch])
		if err != nil {
			if os.Getenv("TRACON_REQUIRE") == "all" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		cmd = exec.Command(interpreter, program)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	if stdin, err = cmd.StdinPipe(); err == nil {
		if stdout, err = cmd.StdoutPipe(); err == nil {
			stderr, err = cmd.StderrPipe()
		}
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return stdin, stdout, stderr, cmd
}

// framed is what an engine sends of two streams.
func framed(stdout, stderr io.Reader) io.Reader {
	r, w := io.Pipe()
	over := make(chan struct{})
	for i, s := range []io.Reader{stdout, stderr} {
		go func() {
			defer func() { over <- struct{}{} }()
			buf := make([]byte, 100) // parts end anywhere
			for {
				n, err := s.Read(buf)
				if n > 0 {
					_, _ = w.Write(append([]byte{byte(i + 1), 0, 0, 0, 0, 0, 0, byte(n)}, buf[:n]...))
				}
				if err != nil {
					return
				}
			}
		}()
	}
	go func() {
		<-over
		<-over
		w.Close()
	}()
	return r
}

// talkTo returns a talk with a first process of this architecture.
func talkTo(t *testing.T) *talk {
	t.Helper()
	stdin, stdout, stderr, _ := start(t, runtime.GOARCH)
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.Copy(stdin, theirs)
		stdin.Close()
	}()
	talk := newTalk(ours, framed(stdout, stderr), io.Discard, io.Discard)
	t.Cleanup(talk.close)
	return talk
}

// The first process makes the calls that it is asked for: files that are laid out are
// collected as any executor's, whatever stands among them (case 38).
func TestTalk(t *testing.T) {
	talk, dir := talkTo(t), t.TempDir()
	big := strings.Repeat("0123456789abcdef", 40_000)
	skill, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "a/b/c.txt", Data: []byte("deep")}, {Path: "big", Data: []byte(big)}, {Path: "empty"}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"skill", "inputs", "outputs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l := layout{t: talk}
	l.files(dir+"/skill", skill)
	talk.read(&l.m, "/proc/self/comm")
	l.flush()
	if l.err != nil {
		t.Fatal(l.err)
	}
	if text, err := talk.heardText(); err != nil || text != "init\n" {
		t.Fatalf("got %q, %v", text, err)
	}
	for _, p := range skill.Paths() {
		want, _, _ := skill.Text(p)
		if got, err := os.ReadFile(filepath.Join(dir, "skill", p)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
	}

	out := filepath.Join(dir, "outputs")
	if err := errors.Join(os.WriteFile(out+"/new", []byte(big), 0o600), os.Mkdir(out+"/folder", 0o700), os.WriteFile(out+"/folder/x", []byte("x"), 0o600),
		os.Symlink("/etc/passwd", out+"/link"), unix.Mkfifo(out+"/fifo", 0o600), os.WriteFile(dir+"/beside", nil, 0o600), os.WriteFile(dir+"/skill/mine", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	tree := newTree(talk)
	var nodes box.Nodes
	for name, n := range map[string]*box.Node{"/skill": &nodes.Skill, "/inputs": &nodes.Inputs, "/outputs": &nodes.Outputs, "": &nodes.Around} {
		if *n, err = tree.root(dir + name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tree.root(out + "/link"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link was followed: %v", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, told := box.AdoptNodes(nodes, skill, bundle.Bundle{}, info.ModTime(), "").Collect(box.Harvest{Bytes: 1 << 20, Files: 10})
	if tree.err != nil || len(files) != 2 || files[0].Path != "folder/x" || files[1].Path != "new" || string(files[1].Data) != big {
		t.Errorf("got %d files, %q, %v", len(files), told, tree.err)
	}
	for _, want := range []string{"outputs/link was not collected: it is a link", "outputs/fifo was not collected", "beside", "mine"} {
		if !slices.ContainsFunc(told, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note tells of %q: %q", want, told)
		}
	}

	var m message
	m.must(unix.SYS_MKDIRAT, 0, num(-1), m.text(dir), num(0o700))
	if err := talk.say(&m); err != nil {
		t.Fatal(err)
	}
	if _, err := talk.hear(0); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a call that must not fail: %v", err)
	}
}

// The first process refuses to be any other, stops what the program leaves, tells how it
// ended, and stops it when its time is over (R23, B3), on both architectures.
func TestTend(t *testing.T) {
	for arch, nr := range map[string]struct{ write, exit, mask, timer, poll uintptr }{"amd64": {1, 231, 14, 38, 271}, "arm64": {64, 94, 135, 103, 73}} {
		t.Run(arch, func(t *testing.T) {
			for _, tc := range []struct {
				name    string
				seconds uint64
				child   []record // what the program does, whose child waits for ever
				want    [3]uint32
			}{
				{"exit", 3600, []record{{kind: recordCall, number: nr.exit, args: []arg{num(7)}}}, [3]uint32{7 << 8, 1, 0}},
				{"time", 1, []record{{kind: recordCall, number: nr.poll, args: []arg{num(0), num(0), num(0), num(0)}}}, [3]uint32{0, 2, 1}},
			} {
				stdin, stdout, _, cmd := start(t, arch)
				m := message{}
				set := m.bytes(binary.LittleEndian.AppendUint64(nil, 1<<(unix.SIGCHLD-1)|1<<(unix.SIGALRM-1)))
				m.must(nr.mask, 0, num(0), set, num(0), num(8))
				m.must(nr.timer, 0, num(0), m.bytes(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(make([]byte, 16), tc.seconds), 0)), num(0))
				fork := len(m.records)
				m.records = append(m.records, record{kind: recordFork, keep: slotPID}, record{kind: recordFork, orElse: fork + 4})
				m.try(nr.poll, 0, num(0), num(0), num(0), num(0))
				m.records = append(m.records, tc.child...)
				m.records[fork].orElse = len(m.records) + 1
				m.records = append(m.records, record{kind: recordTend, keep: slotEnd, args: []arg{of(slotPID), set}})
				m.must(nr.write, 0, num(1), at(slotEnd), num(12))
				m.try(nr.exit, 0, num(3))
				b, err := m.encode()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stdin.Write(b); err != nil {
					t.Fatal(err)
				}
				told, err := io.ReadAll(stdout)
				if err != nil || len(told) != 12 {
					t.Fatalf("%s: %x, %v", tc.name, told, err)
				}
				le := binary.LittleEndian
				if got := [3]uint32{le.Uint32(told), le.Uint32(told[4:]), le.Uint32(told[8:])}; got != tc.want {
					t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
				}
				if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
					t.Errorf("%s: %s", tc.name, cmd.ProcessState)
				}
			}
		})
	}
}
