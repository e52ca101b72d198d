package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// aRunner is a `tracon runner serve` of its own, and the secrets of two hosts that ask.
type aRunner struct {
	*served
	one, two string // keys for acme, and for beta
}

func newRunner(t *testing.T, env map[string]string) *aRunner {
	t.Helper()
	all := map[string]string{"TRACON_ENABLED": "true", "TRACON_RUNTIMES": "sh=/bin/sh", "TRACON_RUNNER_LISTEN": "127.0.0.1:0"}
	for k, v := range env {
		all[k] = v
	}
	r := &aRunner{served: newServed(t, all)}
	r.one, r.two = r.key("one", "acme"), r.key("two", "beta")
	r.serve()
	return r
}

func (r *aRunner) serve() { r.t.Helper(); r.startAs("runner", "serve", "--json") }

func (r *aRunner) key(name, tenants string) string {
	r.t.Helper()
	out, err := r.command("runner", "key", "create", name, "--tenants", tenants).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// post sends one run as a client does that knows R28 alone, with PascalCase members.
func (r *aRunner) post(ctx context.Context, key, tenant, script, stdin string) (status int, body string, err error) {
	sum := sha256.Sum256([]byte(script))
	b, err := json.Marshal(map[string]any{"Tenant": tenant, "Runtime": "sh", "Source": script, "SourceSha256": hex.EncodeToString(sum[:]),
		"StandardInput": stdin, "TimeoutSeconds": 300.5, "MaxOutputBytes": 1000})
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", r.Address+"/runs", strings.NewReader(string(b)))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// holdUp starts a run whose script waits for a pipe, and returns when it waits. The
// answer, or what came in its place, is sent to came.
func (r *aRunner) holdUp() (letGo func(), came chan string) {
	t := r.t
	t.Helper()
	pipe := filepath.Join(r.folder, "pipe"+time.Now().Format("150405.000000000"))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	came = make(chan string, 1)
	go func() {
		_, body, err := r.post(context.Background(), r.one, "acme", "read name; cat $name; echo went-on\n", pipe+"\n")
		if err != nil {
			body = "no answer: " + err.Error()
		}
		came <- body
	}()
	var end *os.File
	eventually(t, "the script waits", func() bool { // it fails while there is no reader
		fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			end = os.NewFile(uintptr(fd), pipe)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = end.Close() }) // it may be closed
	return func() { _ = end.Close() }, came
}

// entriesOf returns the endings in the log, by the real command.
func (r *aRunner) verify() string {
	r.t.Helper()
	out, err := r.command("audit", "verify").CombinedOutput()
	if err != nil {
		r.t.Fatalf("audit verify: %v: %s", err, out)
	}
	out, err = r.command("audit", "list", "--json", "--tenant", "acme").Output()
	if err != nil {
		r.t.Fatalf("audit list: %v", err)
	}
	return string(out)
}

// R28, R30, M12: a client that knows that wire alone has scripts run by another
// process; either host's key is for its own tenants; a key that is revoked lets nobody
// in from then on, without a restart.
func TestRunnerServes(t *testing.T) {
	r := newRunner(t, nil)
	status, body, err := r.post(t.Context(), r.one, "acme", "cat; echo >&2 err; exit 7\n", `{"a":1}`)
	if want := `{"exitCode":7,"standardOutput":"{\"a\":1}","standardError":"err\n","truncated":false,"timedOut":false}` + "\n"; err != nil || status != 200 || body != want {
		t.Errorf("got %d %s (%v), want %s", status, body, err, want)
	}
	for _, tt := range []struct {
		name, key, tenant string
		want              int
	}{
		{"the first host for the other's tenant", r.one, "beta", 403}, {"the other way about", r.two, "acme", 403},
		{"its own", r.two, "beta", 200}, {"no key", "", "acme", 401}, {"a key that is none", "tracon_x", "acme", 401},
	} {
		if status, body, err := r.post(t.Context(), tt.key, tt.tenant, "exit 0\n", ""); err != nil || status != tt.want {
			t.Errorf("%s: got %d %s (%v), want %d", tt.name, status, body, err, tt.want)
		}
	}
	id := strings.Split(r.two, "_")[1]
	if out, err := r.command("runner", "key", "revoke", id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if status, _, err := r.post(t.Context(), r.two, "beta", "exit 0\n", ""); err != nil || status != 401 {
		t.Errorf("a key that was revoked: %d, %v", status, err)
	}
	out, err := r.command("runner", "key", "list").Output()
	if err != nil || !strings.Contains(string(out), "revoked") || strings.Contains(string(out), strings.Split(r.one, "_")[2]) {
		t.Errorf("the list is %s, %v", out, err)
	}
	log := r.verify()
	for _, want := range []string{`"admission"`, `"ending"`, `"peer"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the runner's log has no %s:\n%s", want, log)
		}
	}
	if out, err := r.command("fsck").CombinedOutput(); err != nil {
		t.Errorf("fsck: %v: %s", err, out)
	}
}

// SIGTERM in the middle: the run under way gets its answer, what comes meanwhile is
// turned away, and the exit code is 0.
func TestRunnerDrains(t *testing.T) {
	r := newRunner(t, map[string]string{"TRACON_DRAIN": "10m"})
	letGo, came := r.holdUp()
	r.signal(syscall.SIGTERM)
	r.said("the runner drains")
	eventually(t, "it turns away", func() bool {
		status, body, err := r.post(t.Context(), r.two, "beta", "exit 0\n", "")
		return err == nil && status == 503 && strings.Contains(body, `"draining"`) && strings.Contains(body, `"notStarted":true`)
	})
	letGo()
	if body := <-came; !strings.Contains(body, "went-on") {
		t.Errorf("the run under way got %s", body)
	}
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Killed in the middle: who asked gets no answer, and the next start writes the ending
// that is missing as unknown; the script is run no second time (case 55, R21).
func TestRunnerIsKilled(t *testing.T) {
	r := newRunner(t, nil)
	_, came := r.holdUp()
	r.kill()
	if body := <-came; !strings.Contains(body, "no answer") {
		t.Errorf("there is an answer: %s", body)
	}
	r.serve()
	log := r.verify()
	if n := strings.Count(log, `"kind": "admission"`); n != 1 || !strings.Contains(log, "unknown") {
		t.Errorf("the log has %d admissions, want one that ended unknown:\n%s", n, log)
	}
	if status, body, err := r.post(t.Context(), r.one, "acme", "echo again\n", ""); err != nil || status != 200 {
		t.Errorf("behind the restart: %d %s %v", status, body, err)
	}
}

// R24: a host that hangs up has its script stopped, and the log says cancelled.
func TestRunnerIsHungUpOn(t *testing.T) {
	r := newRunner(t, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	pipe := filepath.Join(r.folder, "begun")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := r.post(ctx, r.one, "acme", "read name; echo >$name; sleep 600\n", pipe+"\n")
		done <- err
	}()
	begun, err := os.OpenFile(pipe, os.O_RDONLY, 0) // until the script writes
	if err != nil {
		t.Fatal(err)
	}
	_ = begun.Close()
	hangUp()
	if err := <-done; err == nil {
		t.Error("there is an answer")
	}
	eventually(t, "the ending is cancelled", func() bool { return strings.Contains(r.verify(), "cancelled") })
}

// What must not be is said at the start, all of it.
func TestRunnerIsUnsafe(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_RUNNER_LISTEN": "0.0.0.0:0", "TRACON_RUNNER_TICKETS": "true"})
	out, err := s.command("runner", "serve").CombinedOutput()
	for _, want := range []string{"runner_listen is 0.0.0.0:0", "enabled is false", "runtimes is empty", "runner_ticket_keys"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v, and it does not say %q: %s", err, want, out)
		}
	}
}
