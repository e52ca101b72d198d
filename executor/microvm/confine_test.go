//go:build linux && amd64

package microvm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

// A shell is a monitor that a script has taken over: it does what the script says, and
// tells by what it says of itself.
type shell struct{ script string }

func (shell) path() string                                        { return "/bin/sh" }
func (shell) describe() string                                    { return "a shell" }
func (s shell) argv(machine) []string                             { return []string{"sh", "-c", s.script} }
func (shell) accelerated(context.Context, *control) (bool, error) { return false, nil }
func (shell) build() (bundle.Digest, error)                       { return bundle.Digest{}, nil }
func (shell) save(context.Context, *control, *os.File) error      { return errors.ErrUnsupported }
func (shell) restore(context.Context, *control, *os.File) error   { return errors.ErrUnsupported }

// asRoot reports whether this is root. Where it is not, it holds that New says so, and a
// test has no more to do.
func asRoot(t testing.TB) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	_, err := New(Config{Kit: t.TempDir(), Runtime: filepath.Join(t.TempDir(), "run")})
	if !errors.Is(err, ErrWall) || !strings.Contains(err.Error(), "sandbox") {
		t.Errorf("an ordinary user is told %v", err)
	}
	return false
}

// B2, X03, F01: a monitor that a script has taken over reads nothing but programs and
// its machine's files, writes nothing, has no rights and no other user's identity, and is
// gone when its machine is killed.
func TestTakenOver(t *testing.T) {
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
	dir, err := os.MkdirTemp("/tmp", "tracon-monitor-") // everybody can go there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	canary, kernel := filepath.Join(dir, "canary"), filepath.Join(dir, "kernel")
	if err := errors.Join(os.Chmod(dir, 0o777), os.WriteFile(canary, []byte("secret"), 0o644), os.WriteFile(kernel, []byte("k"), 0o444)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(kernel)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The memory of a saved machine, which all those that are restored of it have.
	ram, err := box.Sealed("test", 0, func(f *os.File) error { return f.Truncate(4096) })
	if err != nil {
		t.Fatal(err)
	}
	defer ram.Close()
	c, err := start(shell{fmt.Sprintf(`
may() { if (eval "$2") >/dev/null 2>&1; then echo "may $1"; else echo "not $1"; fi; }
may run-programs /usr/bin/true
may read-its-kernel ': </proc/self/fd/3'
may write-its-kernel ': >>/proc/self/fd/3'
may open-memory ': <>/proc/self/fd/4'
may write-memory 'echo x 1<>/proc/self/fd/4'
may cut-memory ': >/proc/self/fd/4'
may grow-memory 'truncate -s 8192 /proc/self/fd/4'
may read-file ': <%[1]s'
may write-file ': >>%[1]s'
may make-file ': >%[2]s/made'
may read-config ': </etc/passwd'
may list-root 'ls /'
may list-processes 'ls /proc'
may read-host 'cat /proc/$PPID/environ'
may signal-host 'kill -0 %[3]d'
may read-kvm ': </dev/kvm'
may become-root 'setpriv --reuid=0 true'
echo "user $(id -u) groups $(id -G)"
exec sleep 600
`, canary, dir, os.Getpid())}, machine{kernel: f, ram: ram}, box.Group{}, id)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"may run-programs", "may read-its-kernel", "not write-its-kernel", "may open-memory", "not write-memory", "not cut-memory", "not grow-memory", "not read-file", "not write-file", "not make-file", "not read-config", "not list-root",
		"not list-processes", "not read-host", "not signal-host", "not read-kvm", "not become-root", fmt.Sprintf("user %d groups %d", id, id),
	}
	for !strings.Contains(c.said.String(), "groups") { // it says so at last
		select {
		case <-c.ended:
			t.Fatalf("it ended; it said %s", c.said)
		case <-t.Context().Done():
			t.Fatal("it says nothing")
		default:
			pause()
		}
	}
	c.kill()
	said := strings.ReplaceAll(strings.Trim(c.said.String(), `"`), `\n`, "\n")
	for _, line := range want {
		if !strings.Contains("\n"+said, "\n"+line+"\n") {
			t.Errorf("B2: it did not say %q; it said:\n%s", line, said)
		}
	}
}

// B2: a monitor that has more open than its machine needs is found out.
func TestSameFiles(t *testing.T) {
	machines, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer machines.Close()
	given, err := inodes([]*os.File{machines})
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []struct {
		name  string
		files []*os.File
		bad   string
	}{
		{"its machine's", []*os.File{machines, machines}, ""},
		{"none", nil, ""},
		{"a folder of the host's", []*os.File{machines, other}, `"/"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", "echo begun; read x")
			cmd.ExtraFiles = c.files
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				in.Close()
				_ = cmd.Wait()
			}()
			if _, err := out.Read(make([]byte, 6)); err != nil { // until then it has what it loads open
				t.Fatal(err)
			}
			_, err = sameFiles(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid), given, false)
			if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Errorf("got %v, want %q", err, c.bad)
			}
		})
	}
}
