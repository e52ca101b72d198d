package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// SIGTERM: what runs may go on for the time of drain; what comes meanwhile is turned
// away; the endings are written; the exit code is 0. A second server is refused as
// long as the first one lives, and what it says names the remedy.
func TestServeDrains(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "10m"}).start()
	c := s.setUp("acme", holding)
	id, letGo := s.hold(c)

	second := s.command("serve")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "another `tracon serve`") || !strings.Contains(string(out), "--data") {
		t.Errorf("a second server: %v: %s", err, out)
	}
	if !s.ready() {
		t.Error("the first one is not ready after the second one was refused")
	}

	s.signal(syscall.SIGTERM)
	s.said(`"msg":"stopping"`)
	if _, err := s.with("").Whoami(t.Context()); err == nil {
		t.Error("it lets somebody in while it stops")
	}
	letGo()
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if _, err := os.Lstat(s.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	s.start()
	if got := ending(t, c, id); got != "exited" {
		t.Errorf("the run that was waited for has the ending %q, want exited", got)
	}
}

// SIGTERM: what has not ended when the time of drain is over is stopped, and its
// ending is written.
func TestServeStopsRunsAtTheDeadline(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "1ms"}).start()
	c := s.setUp("acme", holding)
	id, _ := s.hold(c)
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	s.start()
	if got := ending(t, c, id); got != "cancelled" {
		t.Errorf("the run that was stopped has the ending %q, want cancelled", got)
	}
	if v, err := s.as("").VerifyLog(t.Context()); err != nil {
		t.Errorf("the log: %+v, %v", v, err)
	}
}

// C19: told again to stop, it stops the runs at once, whatever time of drain is left,
// and their endings are written.
func TestServeStopsRunsWhenToldAgain(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "10m"}).start()
	c := s.setUp("acme", holding)
	id, _ := s.hold(c)
	s.signal(syscall.SIGTERM)
	s.said(`"msg":"stopping"`)
	s.signal(os.Interrupt)
	s.said("told again to stop")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	s.start()
	if got := ending(t, c, id); got != "cancelled" {
		t.Errorf("the run that was stopped has the ending %q, want cancelled", got)
	}
}

// T11: a call that waits for its slot while its key is revoked, or its tenant is switched
// off, never runs, be it a program's or a model's; the one that has its slot goes on.
func TestServeAsksWhoWaits(t *testing.T) {
	for _, way := range []string{"the key is revoked", "the tenant is off", "the model's key is revoked", "the model's tenant is off"} {
		t.Run(way, func(t *testing.T) {
			s := newServed(t, map[string]string{"TRACON_SLOTS": "1", "TRACON_SLOTS_PER_TENANT": "1", "TRACON_SLOT_WAIT": "10m"}).start()
			c := s.setUp("acme", holding)
			key, err := c.CreateKey(t.Context(), "", client.NewKey{Name: "ci", Roles: []string{"operator"}})
			if err != nil {
				t.Fatal(err)
			}
			first, letGo := s.hold(s.with(key.Secret))
			waits, want := "", []string{"refused"}
			var model sync.WaitGroup
			t.Cleanup(model.Wait)
			if strings.HasPrefix(way, "the model's") {
				want = append(want, "cancelled") // where the endpoint's own look comes first
				m := s.model(key.Secret)
				model.Go(func() {
					m.ask("tools/call", map[string]any{"name": "run_skill_script", "arguments": map[string]any{"skill": "s", "script": "s.sh", "arguments": []string{"/dev/null"}}})
				})
				eventually(t, "the model's call waits", func() bool {
					list, err := c.Runs(t.Context(), "", 20)
					i := slices.IndexFunc(list, func(r client.Run) bool { return r.State == client.RunQueued })
					if i >= 0 {
						waits = list[i].ID
					}
					return err == nil && i >= 0
				})
			} else {
				run, err := s.with(key.Secret).StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage(`["/dev/null"]`)}, client.RunOptions{Detach: true})
				if err != nil || run.State != client.RunQueued {
					t.Fatalf("%+v, %v", run, err)
				}
				waits = run.ID
			}
			if strings.HasSuffix(way, "tenant is off") {
				off := true
				_, err = s.as("").ChangeTenant(t.Context(), "acme", "*", client.TenantChange{Off: &off})
			} else {
				_, err = c.RevokeKey(t.Context(), "", key.Key.ID, "*", "")
			}
			if err != nil {
				t.Fatal(err)
			}
			letGo()
			endings := map[string]string{}
			for _, id := range []string{first, waits} { // as the operator sees them: the key sees nothing any more
				eventually(t, "both are recorded", func() bool {
					call, err := c.Call(t.Context(), id)
					endings[id] = call.Ending
					return err == nil
				})
			}
			if endings[first] != "exited" || !slices.Contains(want, endings[waits]) {
				t.Errorf("the endings are %v, want exited for %s and one of %v for %s", endings, first, want, waits)
			}
			model.Wait() // it has its answer
		})
	}
}

// C17: configurations before may live on for their runs, but not without a bound: a
// reload that finds too many waits, and has the oldest end.
func TestServeReloadsAmongLongRuns(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "1ms"}).start()
	c := s.setUp("acme", holding)
	reload := func() {
		t.Helper()
		s.forget()
		s.signal(syscall.SIGHUP)
		s.said(`"msg":"reloaded"`)
	}
	oldest, _ := s.hold(c)
	reload()
	younger, letGo := s.hold(c)
	reload()
	s.forget()
	s.signal(syscall.SIGHUP)
	s.said("the reload waits")
	s.said(`"msg":"reloaded"`)
	if got := ending(t, c, oldest); got != "cancelled" {
		t.Errorf("the oldest run has the ending %q, want cancelled", got)
	}
	if r, err := c.Run(t.Context(), younger); err != nil || r.State != client.RunRunning {
		t.Errorf("the younger run: %+v, %v", r, err)
	}
	letGo()
}

// kill -9 in the middle of a run: what was acknowledged is there, the run is closed as
// unknown, and nobody's hand is needed, not for the socket either. The first key is
// there once, whatever happens.
func TestServeIsKilled(t *testing.T) {
	s := newServed(t, nil).start()
	first := filepath.Join(s.env["TRACON_DATA"], "first.key")
	secret, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(first); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the first key: %v, %v", info.Mode(), err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	c := s.setUp("acme", holding)
	id, _ := s.hold(c)
	grants, err := c.Grants(t.Context(), "", 10)
	if err != nil || len(grants) != 1 {
		t.Fatalf("%v, %v", grants, err)
	}
	s.kill()
	s.start()
	if got := ending(t, c, id); got != "unknown" {
		t.Errorf("the run has the ending %q, want unknown", got)
	}
	if again, err := c.Grants(t.Context(), "", 10); err != nil || len(again) != 1 || again[0].ID != grants[0].ID {
		t.Errorf("the grants are %v, %v", again, err)
	}
	if _, err := os.Lstat(first); !os.IsNotExist(err) {
		t.Errorf("there is another first key: %v", err)
	}
	who, err := s.with(strings.TrimSpace(string(secret))).Whoami(t.Context())
	if err != nil || !slices.Equal(who.Roles, []string{"platform"}) {
		t.Errorf("the first key is %+v, %v", who, err)
	}
	for _, line := range s.lines() {
		if strings.Contains(line, strings.TrimSpace(string(secret))) {
			t.Errorf("the log has the first key: %s", line)
		}
	}
}

// SIGHUP: what the file says holds as a whole, or not at all; what needs a restart is
// said. Runs under way go on, and are found still.
func TestServeReloads(t *testing.T) {
	s := newServed(t, nil)
	file := filepath.Join(s.folder, "tracon.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.env["TRACON_CONFIG"] = file
	write("")
	s.start()
	host := func() client.Host {
		t.Helper()
		h, _, err := s.as("").Host(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if host().Enabled {
		t.Fatal("the host is on by default")
	}
	write("enabled: true\ninterpreters: {sh: /bin/sh}\nrate_key: 5000\nstate: elsewhere\n")
	s.signal(syscall.SIGHUP)
	s.said(`"msg":"reloaded"`)
	if !host().Enabled {
		t.Error("the host is off still")
	}
	if line := s.said("hold only after a restart"); !strings.Contains(line, "state") {
		t.Errorf("it says %s", line)
	}
	for name, text := range map[string]string{
		"not YAML": "enabled: [\n", "unknown": "enabled: false\nslot: 1\n", "unsafe": "enabled: false\noidc_audience: a\n",
		"a provider that cannot be": "enabled: false\noidc_issuer: http://login.example.org\n",
	} {
		s.forget()
		write(text)
		s.signal(syscall.SIGHUP)
		s.said("not reloaded")
		if !host().Enabled {
			t.Errorf("%s: half of it holds", name)
		}
	}
	if !s.ready() {
		t.Error("it is not ready")
	}
}

// The start refuses what is unsafe, and says all of it at once.
func TestServeRefusesToStart(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_LISTEN": "0.0.0.0:0", "TRACON_TLS_CERT": "cert.pem", "TRACON_PRODUCTION": "true", "TRACON_OIDC_TENANT": "t"})
	out, err := s.command("serve").CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"tls_key", "oidc_issuer", "walls nothing off", "require_walls", "checkpoints", "configuration file"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if _, err := os.Lstat(s.env["TRACON_DATA"]); !os.IsNotExist(err) {
		t.Errorf("it made the data folder: %v", err)
	}
}

// A disk that takes no more: what was acknowledged is there, readiness tells, and when
// there is room again nobody's hand is needed. The disk is played by the limit on the
// size of files, which the test lowers and raises while the server runs.
func TestServeOnAFullDisk(t *testing.T) {
	s := newServed(t, nil).start()
	c := s.setUp("acme", holding)
	id, _ := s.hold(c)
	var before unix.Rlimit
	if err := unix.Prlimit(s.process.Pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
		t.Fatal(err)
	}
	full := before
	full.Cur = 1
	if err := unix.Prlimit(s.process.Pid, unix.RLIMIT_FSIZE, &full, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.as("").CreateTenant(t.Context(), client.NewTenant{Name: "late"}); err == nil {
		t.Fatal("a change was made on a full disk")
	}
	eventually(t, "readiness tells", func() bool { return !s.ready() })
	s.said("the store takes no more changes") // and what runs is stopped
	s.said("the store cannot be opened yet")
	if h, err := http.Get(s.Address + "/healthz"); err != nil || h.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %v, %v", h, err)
	} else {
		_ = h.Body.Close()
	}
	if err := unix.Prlimit(s.process.Pid, unix.RLIMIT_FSIZE, &before, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready again", s.ready)
	if got := ending(t, c, id); got != "unknown" {
		t.Errorf("the run whose ending could not be written has the ending %q, want unknown", got)
	}
	if tenants, err := s.as("").Tenants(t.Context()); err != nil || len(tenants) != 1 || tenants[0].Name != "acme" {
		t.Errorf("the tenants are %+v, %v", tenants, err)
	}
	if id, letGo := s.hold(c); id == "" {
		t.Error("nothing runs")
	} else {
		letGo()
		eventually(t, "the next run ends", func() bool { r, err := c.Run(t.Context(), id); return err == nil && r.State == client.RunEnded })
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// PostgreSQL stops in the middle: what was acknowledged is there, readiness tells,
// and when it is back nobody's hand is needed: the ending that could not be written
// is written as unknown.
func TestServeWhilePostgresIsStopped(t *testing.T) {
	server := pgserver.Shared(t)
	address, err := server.Schema()
	if err != nil {
		t.Fatal(err)
	}
	// Whether the run is let go or loses its slot first, its ending cannot be written.
	s := newServed(t, map[string]string{"TRACON_STORE": "postgres", "TRACON_DATABASE_URL": address, "TRACON_LEASE": "15s"}).start()
	c := s.setUp("acme", holding)
	id, letGo := s.hold(c)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness tells", func() bool { return !s.ready() })
	if _, err := s.as("").CreateTenant(t.Context(), client.NewTenant{Name: "late"}); !errors.Is(err, client.Unavailable) {
		t.Errorf("a change without a database: %v, want unavailable", err)
	}
	letGo()
	s.said("an ending could not be written")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready again", s.ready)
	eventually(t, "the run is closed", func() bool { call, err := c.Call(t.Context(), id); return err == nil && call.Ending == "unknown" })
	if tenants, err := s.as("").Tenants(t.Context()); err != nil || len(tenants) != 1 || tenants[0].Name != "acme" {
		t.Errorf("the tenants are %+v, %v", tenants, err)
	}
	for _, line := range s.lines() {
		if strings.Contains(line, pgserver.Password) {
			t.Errorf("the log has the database's password: %s", line)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// The service manager is told when it serves, reloads and stops, and nothing that is
// started could tell it in its place.
func TestServeTellsItsManager(t *testing.T) {
	s := newServed(t, nil)
	manager := filepath.Join(s.folder, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: manager, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	told := func(want string) {
		t.Helper()
		b := make([]byte, 256)
		n, err := l.Read(b)
		if err != nil || string(b[:n]) != want {
			t.Fatalf("told %q, %v; want %s", b[:n], err, want)
		}
	}
	s.env["NOTIFY_SOCKET"] = manager
	s.start()
	told("READY=1")
	s.signal(syscall.SIGHUP)
	told("RELOADING=1")
	told("READY=1")
	s.signal(syscall.SIGTERM)
	told("STOPPING=1")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
