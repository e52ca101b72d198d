package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/toolcall"
)

// hostVariable has the test binary be a host that makes some calls: their number,
// and the script.
const hostVariable = "TRACON_TEST_HOST"

func TestMain(m *testing.M) {
	if what := os.Getenv(hostVariable); what != "" {
		if err := beHost(what); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgserver.Main(m, func() error { return goleak.Find() }))
}

// beHost opens the house that the environment tells of, and makes the calls, all at
// once. It prints a line for each that failed.
func beHost(what string) error {
	c, err := config.Load(config.Source{Getenv: os.Getenv})
	if err != nil {
		return err
	}
	h, err := daemon.Open(context.Background(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	runner, err := started(h)
	if err != nil {
		return errors.Join(err, h.Close(context.Background()))
	}
	number, script, _ := strings.Cut(what, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if out, err := runner.Run(context.Background(), gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: script}); err != nil || out.Stderr != "" {
				fmt.Println("failed:", out.Stderr, err)
			}
		})
	}
	wg.Wait()
	return h.Close(context.Background())
}

func started(h *daemon.House) (*tracon.Runner, error) {
	if err := h.AddRoots(); err != nil {
		return nil, err
	}
	return h.Start(context.Background())
}

// A fleet is several hosts over one database.
type fleet struct {
	*testing.T
	address string
	skills  string
	shared  string // a folder that scripts leave their proofs in
}

// env are the settings of one host of the fleet. Leases outlast the test: what expires
// does so because the test says so.
func (f *fleet) env() map[string]string {
	home := f.TempDir()
	return map[string]string{
		"HOME": home, "TRACON_STORE": "postgres", "TRACON_DATABASE_URL": f.address, "TRACON_EXECUTOR": "process", "TRACON_LEASE": "10h",
		"TRACON_RUNTIME": filepath.Join(home, "run"), "TRACON_SKILLS": f.skills, "TRACON_SLOTS": "3", "TRACON_SLOTS_PER_TENANT": "3",
		"TRACON_SLOT_WAIT": "10m",
	}
}

// house is a host of this very process.
func (f *fleet) house() *daemon.House {
	f.Helper()
	env := f.env()
	c, err := config.Load(config.Source{Getenv: func(k string) string { return env[k] }})
	if err != nil {
		f.Fatal(err)
	}
	h, err := daemon.Open(f.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			f.Error(err)
		}
	})
	return h
}

// host starts a process that makes n calls of script.
func (f *fleet) host(n int, script string) (*exec.Cmd, *bufio.Reader) {
	f.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), fmt.Sprintf("%s=%d %s", hostVariable, n, script)}
	for k, v := range f.env() {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := c.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Process.Kill() })
	return c, bufio.NewReader(out)
}

// ends waits for a host, and returns what it printed.
func ends(t *testing.T, c *exec.Cmd, out io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("a host ended with %v: %s", err, text)
	}
	return string(text)
}

// expire ends the leases of the hosts but that of keep, some time ago.
func (f *fleet) expire(keep *daemon.House, ago time.Duration) {
	f.Helper()
	u, err := url.Parse(f.address)
	if err != nil {
		f.Fatal(err)
	}
	_, err = pgserver.Shared(f).SQL(fmt.Sprintf(`UPDATE %s.host_instance SET expires = CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) - %d WHERE id <> '%s'`,
		u.Query().Get("search_path"), ago.Microseconds(), keep.ID()))
	if err != nil {
		f.Fatal(err)
	}
}

// appear waits until n files begin with name in the shared folder.
func (f *fleet) appear(name string, n int) []string {
	f.Helper()
	for range 60000 {
		found, err := filepath.Glob(filepath.Join(f.shared, name+"*"))
		if err != nil {
			f.Fatal(err)
		}
		if len(found) == n {
			return found
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Fatalf("%d files %s never came", n, name)
	return nil
}

// endings counts what the log says came of the admitted calls; each has one ending,
// and one record that says the same.
func (f *fleet) endings(h *daemon.House) map[string]int {
	f.Helper()
	if _, err := h.Log.Verify(f.Context(), nil); err != nil {
		f.Error(err)
	}
	open, count := map[string]int{}, map[string]int{}
	for leaf, err := range h.Log.Entries(f.Context(), "t", 0) {
		if err != nil {
			f.Fatal(err)
		}
		switch e := leaf.Entry; e.Kind {
		case audit.Admission:
			open[e.Run]++
		case audit.Ending:
			open[e.Run]--
			count[e.Fact("ending")]++
			if r, err := h.Store.Call(f.Context(), "t", e.Run); err != nil || r.Ending != e.Fact("ending") {
				f.Errorf("the record of a call that ended %s says %q, %v", e.Fact("ending"), r.Ending, err)
			}
		}
	}
	for run, n := range open {
		if n != 0 {
			f.Errorf("of call %s there are %d admissions more than endings", run, n)
		}
	}
	return count
}

// scripts leave their proofs in the folder DIR. The counter is kept under a lock, so
// the order of its changes is that in which they happened.
var scripts = map[string]string{
	"count.sh": `set -e
exec 9>>DIR/lock
add() { flock 9; n=$(($(cat DIR/now 2>/dev/null || echo 0) + $1)); echo $n >DIR/now; [ $n -le 3 ] || : >DIR/exceeded; [ $1 = -1 ] || echo x >>DIR/ran; flock -u 9; }
add 1
sleep 0.02
add -1
`,
	// Each of three waits for the two others, so all have a slot at once.
	"three.sh": `: >DIR/three.$$
until set -- DIR/three.* && [ $# -ge 3 ]; do sleep 0.01; done
`,
	"wait.sh": `echo $$ >DIR/waits.tmp.$$ && mv DIR/waits.tmp.$$ DIR/pid.$$
until [ -e DIR/go ]; do sleep 0.01; done
`,
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{T: t, address: pgserver.New(t), skills: t.TempDir(), shared: t.TempDir()}
	write(t, filepath.Join(f.skills, "s", "SKILL.md"), front)
	for name, text := range scripts {
		write(t, filepath.Join(f.skills, "s", name), strings.ReplaceAll(text, "DIR", f.shared))
	}
	return f
}

// TestTwoHosts: B9, two host processes share the slots of one PostgreSQL. They are
// never exceeded; when one process is killed its slots come back, and what it ran
// ends as unknown; when one is paused until others took it for dead, its return
// changes nothing (I5).
func TestTwoHosts(t *testing.T) {
	f := newFleet(t)
	operator := f.house()
	if err := operator.AddRoots(); err != nil {
		t.Fatal(err)
	}
	settings(t, operator)
	if _, err := operator.Admin.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error { p.Timeout = 20 * time.Minute; return nil }); err != nil {
		t.Fatal(err)
	}
	grantAll(t, operator)

	// Slots are never exceeded.
	const calls = 25
	one, out1 := f.host(calls, "count.sh")
	two, out2 := f.host(calls, "count.sh")
	if s := ends(t, one, out1) + ends(t, two, out2); s != "" {
		t.Errorf("calls of two hosts: %s", s)
	}
	if _, err := os.Stat(filepath.Join(f.shared, "exceeded")); err == nil {
		t.Error("more scripts ran at once than there are slots")
	}
	if ran, err := os.ReadFile(filepath.Join(f.shared, "ran")); err != nil || strings.Count(string(ran), "x") != 2*calls {
		t.Errorf("%d scripts ran, want %d (%v)", strings.Count(string(ran), "x"), 2*calls, err)
	}
	if got := f.endings(operator); got["exited"] != 2*calls || len(got) != 1 {
		t.Errorf("the calls ended %v", got)
	}

	// One is killed while it has two slots.
	living := f.house()
	runner, err := started(living)
	if err != nil {
		t.Fatal(err)
	}
	killed, _ := f.host(2, "wait.sh")
	f.kill(killed, f.appear("pid.", 2))
	f.expire(living, 0)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "three.sh"}); err != nil {
				t.Errorf("with the slots of the killed host: %v", err)
			}
		})
	}
	wg.Wait()
	f.expire(living, 24*time.Hour)
	if _, err := started(f.house()); err != nil {
		t.Fatal(err)
	}
	if got := f.endings(operator); got["unknown"] != 2 || got["exited"] != 2*calls+3 {
		t.Errorf("after the kill the calls ended %v, want two unknown", got)
	}

	// One is paused until it is taken for dead.
	paused, out := f.host(1, "wait.sh")
	f.appear("pid.", 1)
	if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.expire(living, 24*time.Hour)
	if _, err := started(f.house()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(f.shared, "go"), "")
	if err := paused.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(text), "took this one for dead") {
		t.Errorf("the return of the paused host says %q, %v", text, err)
	}
	if err := paused.Wait(); err != nil {
		t.Error(err)
	}
	if got := f.endings(operator); got["unknown"] != 3 || got["exited"] != 2*calls+3 || len(got) != 2 {
		t.Errorf("after the pause the calls ended %v, want three unknown", got)
	}
	records, err := operator.Store.Calls(t.Context(), "t", toolcall.Filter{Limit: 1000})
	if err != nil || len(records) != 2*calls+3+3 {
		t.Errorf("there are %d records, %v", len(records), err)
	}
}

// kill kills a host, and then the scripts that wrote the files of their ids.
func (f *fleet) kill(c *exec.Cmd, pids []string) {
	f.Helper()
	if err := c.Process.Kill(); err != nil {
		f.Fatal(err)
	}
	_ = c.Wait()
	for _, file := range pids {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), "."))
		if err != nil {
			f.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			f.Error(err)
		}
		if err := os.Remove(file); err != nil {
			f.Error(err)
		}
	}
}
