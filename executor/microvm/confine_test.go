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
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

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
// gone when its machine is killed. Where a wall is missing, what it keeps out gets through.
func TestTakenOver(t *testing.T) {
	if !asRoot(t) {
		return
	}
	whole := []string{
		"may run-programs", "may read-its-kernel", "not write-its-kernel", "may open-memory", "not write-memory", "not cut-memory", "not grow-memory", "not read-file", "not read-private", "not write-file", "not make-file", "not read-config", "not list-root",
		"not list-processes", "not read-host", "not signal-host", "not read-kvm", "not become-root", "is itself alone",
	}
	landlock := []string{"may read-file", "may make-file", "may read-config", "may list-root", "may list-processes"}
	user := []string{"may become-root", "is another"}
	for _, c := range []struct {
		name           string
		landlock, user bool     // is missing
		may            []string // what is said otherwise
	}{
		{"no wall", false, false, nil},
		{"Landlock", true, false, landlock},
		{"the user", false, true, user},
		{"Landlock and the user", true, true, slices.Concat(landlock, user, []string{"may read-private", "may write-file", "may write-its-kernel"})},
	} {
		t.Run(c.name+" is missing", func(t *testing.T) {
			said := takenOver(t, func(sys *syscall.SysProcAttr, rules *int) {
				if c.landlock {
					*rules = everything(t)
				}
				if c.user {
					sys.Credential = nil
				}
			})
			for _, line := range whole {
				if c.landlock && line == "not read-kvm" {
					continue // then the device's mode says who may
				}
				for _, other := range c.may {
					if line[strings.Index(line, " "):] == other[strings.Index(other, " "):] || strings.HasPrefix(line, "is ") && strings.HasPrefix(other, "is ") {
						line = other
					}
				}
				if !strings.Contains("\n"+said, "\n"+line+"\n") {
					t.Errorf("B2: it did not say %q; it said:\n%s", line, said)
				}
			}
		})
	}
}

// everything is a set of rules by which everything is allowed.
func everything(t *testing.T) int {
	t.Helper()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<15 - 1}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { unix.Close(int(fd)) })
	top, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: attr.Handled_access_fs, Parent_fd: int32(top.Fd())}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	return int(fd)
}

// takenOver returns what a monitor says that tries what it may, behind the walls but what
// missing takes away.
func takenOver(t *testing.T, missing func(sys *syscall.SysProcAttr, rules *int)) string {
	t.Helper()
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
	if err := errors.Join(os.Chmod(dir, 0o777), os.WriteFile(canary, []byte("secret"), 0o644), os.WriteFile(canary+".private", []byte("secret"), 0o600), os.WriteFile(kernel, []byte("k"), 0o444)); err != nil {
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
	mon, m := shell{fmt.Sprintf(`
may() { if (eval "$2") >/dev/null 2>&1; then echo "may $1"; else echo "not $1"; fi; }
may run-programs /usr/bin/true
may read-its-kernel ': </proc/self/fd/3'
may write-its-kernel ': >>/proc/self/fd/3'
may open-memory ': <>/proc/self/fd/4'
may write-memory 'echo x 1<>/proc/self/fd/4'
may cut-memory ': >/proc/self/fd/4'
may grow-memory 'truncate -s 8192 /proc/self/fd/4'
may read-file ': <%[1]s'
may read-private ': <%[1]s.private'
may write-file ': >>%[1]s'
may make-file ': >%[2]s/made'
may read-config ': </etc/passwd'
may list-root 'ls /'
may list-processes 'ls /proc'
may read-host 'cat /proc/$PPID/environ'
may signal-host 'kill -0 %[3]d'
may read-kvm ': </dev/kvm'
may become-root 'setpriv --reuid=0 true'
if [ "$(id -u) $(id -G)" = "%[4]d %[4]d" ]; then echo "is itself alone"; else echo "is another"; fi
echo said
exec sleep 600
`, canary, dir, os.Getpid(), id)}, machine{kernel: f, ram: ram}
	rules, err := landlock(m)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(rules)
	sys, err := attributes(m, id)
	if err != nil {
		t.Fatal(err)
	}
	missing(sys, &rules)
	c, err := behind(mon, m, box.Group{}, sys, rules)
	if err != nil {
		t.Fatal(err)
	}
	said := c.heard(t, "said")
	c.kill()
	return said
}

// heard returns what the monitor says until it has said the word.
func (c *child) heard(t *testing.T, word string) string {
	t.Helper()
	for {
		said := strings.ReplaceAll(strings.Trim(c.said.String(), `"`), `\n`, "\n")
		if strings.HasSuffix(said, "\n"+word+"\n") || said == word+"\n" {
			return said
		}
		select {
		case <-c.ended:
			t.Fatalf("it ended; it said %s", c.said)
		case <-t.Context().Done():
			t.Fatal("it says nothing")
		default:
			pause()
		}
	}
}

// B2: a monitor gets the group of the processor's device where that helps, and no other.
func TestGroupsFor(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode, gid uint32
		want      []uint32
	}{
		{"a group's", 0o660, 104, []uint32{104}},
		{"everybody's", 0o666, 104, nil},
		{"root's", 0o600, 0, nil},
		{"of a group that this user namespace has not", 0o660, nobodysGroup, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := groupsFor(unix.Stat_t{Mode: unix.S_IFCHR | c.mode, Gid: c.gid}); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
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
