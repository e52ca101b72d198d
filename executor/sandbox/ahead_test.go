//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/executor/interpreter"
	"golang.org/x/sys/unix"
)

// keeper returns an ahead whose boxes are none, in a bubble, and those that were
// let go of.
func keeper(most int) (a *ahead, razed *[]*hull) {
	razed = new([]*hull)
	var mu sync.Mutex
	return &ahead{
		most: most,
		make: func(k kind) (*hull, error) { return &hull{kind: k, since: time.Now()}, nil },
		raze: func(h *hull) {
			mu.Lock()
			defer mu.Unlock()
			*razed = append(*razed, h)
		},
		busy:  func() bool { return false },
		fresh: func(*hull) bool { return true },
	}, razed
}

func of(tenant string) kind { return kind{tenant: tenant, memory: 1 << 20, processes: 8} }

// call is a call of the kind, and reports whether a box waited for it.
func (a *ahead) call(k kind) bool {
	served := a.take(k) != nil
	a.want(k)
	synctest.Wait()
	return served
}

// counts returns how many boxes wait and how many kinds are remembered.
func (a *ahead) counts() (waiting, asked int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting), len(a.asked)
}

// B3: a box is made for the third call of a kind at the earliest, serves one, and is
// let go of in the end whatever becomes of it.
func TestAheadOfACall(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls string // by tenant; '.' is half of the time that a box waits, '|' lets go of all
		want  string // those that were served
		razed int
	}{
		{"one", "a", "", 0},
		{"two", "aa", "", 1},
		{"three", "aaa", "a", 1},
		{"many", "aaaaaaaa", "aaaaaa", 1},
		{"another tenant", "aab", "", 1},
		{"in turn", "ababab", "ab", 2},
		{"more tenants than boxes", "abcdeabcdeabcde", "abcd", 4},
		{"too rare", "a..a..a..a", "", 0},
		{"rare", "a.a.a.a", "aa", 1},
		{"a pause", "aa..a", "", 1},
		{"a pause that is short", "aa.a.", "a", 1},
		{"after the end", "aa|aaa", "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, razed := keeper(4)
				served := ""
				for _, c := range tc.calls {
					switch c {
					case '.':
						time.Sleep(waitTime / 2)
						synctest.Wait()
					case '|':
						a.close()
					default:
						if a.call(of(string(c))) {
							served += string(c)
						}
					}
				}
				a.close()
				if served != tc.want || len(*razed) != tc.razed || len(a.waiting) > 0 {
					t.Errorf("served %q, want %q; let go of %d, want %d; %d wait", served, tc.want, len(*razed), tc.razed, len(a.waiting))
				}
			})
		})
	}
}

// B10: no more boxes wait than may, half of them for one tenant, and no box waits
// for longer than it may though no call comes any more.
func TestAheadIsBounded(t *testing.T) {
	for _, tc := range []struct{ most, one, all int }{{-1, 0, 0}, {0, 0, 0}, {1, 1, 1}, {2, 1, 2}, {4, 2, 4}, {5, 2, 5}} {
		synctest.Test(t, func(t *testing.T) {
			a, razed := keeper(tc.most)
			for range 3 { // more at once than boxes may wait
				for range 20 {
					a.want(of("a"))
				}
				synctest.Wait()
			}
			if n, _ := a.counts(); n != tc.one {
				t.Errorf("of at most %d, %d wait for one tenant, want %d", tc.most, n, tc.one)
			}
			for i := range 3 * mostKinds {
				for range 3 {
					a.want(of(string(rune('b' + i))))
				}
				synctest.Wait()
			}
			if n, asked := a.counts(); n != tc.all || asked > mostKinds {
				t.Errorf("of at most %d, %d wait, want %d; %d kinds are remembered", tc.most, n, tc.all, asked)
			}
			time.Sleep(waitTime)
			synctest.Wait()
			if len(a.waiting) != 0 || len(*razed) != tc.all || a.timer != nil {
				t.Errorf("%d still wait, %d were let go of, want %d", len(a.waiting), len(*razed), tc.all)
			}
			a.close()
		})
	}
}

// A box is made for a tenant, limits, a network, a root and the names in the skill's
// folder, and serves no call that differs in one of them.
func TestAheadOfAnotherKind(t *testing.T) {
	k := of("a")
	for _, tc := range []struct {
		name   string
		change func(*kind)
	}{
		{"tenant", func(k *kind) { k.tenant = "b" }}, {"memory", func(k *kind) { k.memory++ }}, {"processes", func(k *kind) { k.processes++ }},
		{"network", func(k *kind) { k.network = "loopback" }}, {"runtime", func(k *kind) { k.runtime = &runtimeRoot{} }},
		{"inputs", func(k *kind) { k.taken.inputs = true }}, {"outputs", func(k *kind) { k.taken.outputs = true }},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := keeper(4)
			other := k
			tc.change(&other)
			a.call(k)
			a.call(k)
			if a.take(other) != nil {
				t.Errorf("a box serves a call of another %s", tc.name)
			}
			if a.take(k) == nil {
				t.Error("no box waits for a call of its kind")
			}
			a.close()
		})
	}
}

// B10: while the host is asked whether a box shows what is there now, which a slow
// folder may take long to answer, no other call waits; and a box that shows something
// else serves none.
func TestAheadOfASlowFolder(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a, razed := keeper(4)
			asked := 0
			a.fresh = func(*hull) bool {
				asked++
				if !a.mu.TryLock() {
					t.Error("other calls wait while the host is asked")
				} else {
					a.mu.Unlock()
				}
				return fresh
			}
			a.call(of("a"))
			a.call(of("a"))
			h := a.take(of("a"))
			a.close()
			if (h != nil) != fresh || asked != 1 || (a.served == 1) != fresh || (len(*razed) == 0) != fresh {
				t.Errorf("fresh: %v; served: %v, asked %d times, let go of %d", fresh, h != nil, asked, len(*razed))
			}
		})
	}
}

// B2: a folder that is shown by a link to it is another one when what the link
// leads to was replaced.
func TestAheadOfALink(t *testing.T) {
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.Symlink(folder, link)); err != nil {
		t.Fatal(err)
	}
	l := layout{binds: []bind{{path: link, folder: true}}}
	before := l.inodes()
	if !slices.Equal(before, l.inodes()) {
		t.Error("what nobody replaced is another one")
	}
	if err := errors.Join(os.Rename(folder, folder+"-before"), os.Mkdir(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, l.inodes()) {
		t.Error("what was replaced is the same")
	}
}

// A box that cannot be made is missed by nobody, and one that was being made when
// the end came is let go of.
func TestAheadThatComesToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, razed := keeper(4)
		makes := a.make
		a.make = func(kind) (*hull, error) { return nil, errors.New("not today") }
		for range 3 {
			if a.call(of("a")) || len(a.wanted) > 0 {
				t.Error("there is a box that was not made")
			}
		}
		slow := make(chan struct{})
		a.make = func(k kind) (*hull, error) { <-slow; return makes(k) }
		a.call(of("a"))
		go func() {
			synctest.Wait() // until close waits for what is being made
			close(slow)
		}()
		a.close()
		if len(*razed) != 1 || len(a.waiting) > 0 {
			t.Errorf("let go of %d, and %d wait", len(*razed), len(a.waiting))
		}
	})
}

// mountsEnv says that the test runs in a mount namespace of its own.
const mountsEnv = "TRACON_TEST_MOUNTS"

// B2: what is mounted on the host, or taken away, after a box was made, or while it
// is made, is not missing in it: no call is served by that box.
func TestAheadOfAMount(t *testing.T) {
	if os.Getenv(mountsEnv) == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), mountsEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n--- PASS: "+t.Name()+" ") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil { // no mount of others comes between
		t.Fatal(err)
	}
	dir := t.TempDir()
	mount := func() error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "") }
	for _, tc := range []struct {
		name   string
		making func() error // while the box is made
		waits  func() error // while it waits
		served bool
	}{
		{"nothing", nil, nil, true},
		{"mounted", nil, mount, false},
		{"nothing below it", nil, nil, true},
		{"taken away", nil, func() error { return unix.Unmount(dir, 0) }, false},
		{"while it is made", mount, nil, false},
		{"nothing any more", nil, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, razed := keeper(4)
			w, err := watchMounts()
			if err != nil {
				t.Fatal(err)
			}
			a.mounts = w
			makes := a.make
			a.make = func(k kind) (*hull, error) {
				if tc.making != nil {
					if err := tc.making(); err != nil {
						t.Error(err)
					}
				}
				return makes(k)
			}
			a.want(of("a"))
			a.want(of("a"))
			a.work.Wait()
			if tc.waits != nil {
				if err := tc.waits(); err != nil {
					t.Fatal(err)
				}
			}
			served := a.take(of("a")) != nil
			a.close()
			if served != tc.served || len(*razed) > 0 == tc.served {
				t.Errorf("served: %v, let go of %d", served, len(*razed))
			}
		})
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !slices.ContainsFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.Contains(l, " "+dir+" ") }) {
		t.Errorf("what was mounted is not there: %v", err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
}

// B10: where something of the host is used up, boxes that wait are let go of before
// a run is refused.
func TestAheadOfScarcity(t *testing.T) {
	sh, err := interpreter.Find(t.Context(), "sh")
	if err != nil {
		t.Fatal(err)
	}
	e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run")}, func(*setup) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var short atomic.Bool
	e.setup.alter = func(p *program) {
		if p.base == frameBase && short.Load() && len(Waiting(e)) > 0 { // a word that has another value: EAGAIN
			p.call(unix.SYS_FUTEX, number(frameBase), number(futexWait), number(1), number(0))
			last := len(p.steps) - 1
			p.steps = append([]*step{p.steps[last]}, p.steps[:last]...)
		}
	}
	run := func(tenant string) error {
		_, err := e.run(t.Context(), job{
			tenant: tenant, extension: "sh", argv: []string{"sh", "-c", "true"}, timeout: time.Minute, output: 1 << 10, limits: e.limit(8), interpreter: sh.Interpreter(),
		})
		return err
	}
	for deadline := time.Now().Add(time.Minute); len(Waiting(e)) == 0 && time.Now().Before(deadline); Made(e) {
		if err := run("one"); err != nil {
			t.Fatal(err)
		}
	}
	short.Store(true)
	if err := run("another"); err != nil {
		t.Errorf("a run is refused: %v", err)
	}
	if n := len(Waiting(e)); n > 0 {
		t.Errorf("%d boxes still wait", n)
	}
}
