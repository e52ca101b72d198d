package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// aHost is an installation whose scripts are run by a runner service.
type aHost struct {
	*served
	skill string
}

// newHost returns one that asks r with the key of acme. The skill has one script, in sh.
func newHost(t *testing.T, r *aRunner, script, more string) *aHost {
	t.Helper()
	h := &aHost{served: newServed(t, nil)}
	delete(h.env, "TRACON_EXECUTOR")
	h.write("runner.key", r.one+"\n")
	h.write("tracon.yaml", "enabled: true\nexecutor: remote\nremote: "+r.Address+"\nremote_reach: [loopback]\nremote_key_file: runner.key\ninterpreters: {sh: runtime:sh}\n"+more)
	h.env["TRACON_CONFIG"] = filepath.Join(h.folder, "tracon.yaml")
	h.skill = filepath.Join(h.folder, "there")
	if err := os.Mkdir(h.skill, 0o755); err != nil {
		t.Fatal(err)
	}
	h.write("there/SKILL.md", "---\nname: there\ndescription: Runs elsewhere.\n---\n# There\n")
	h.write("there/main.sh", script)
	h.write("there/lib.txt", strings.Repeat("x", 100<<10)) // which makes the closure one that is uploaded
	h.write("there/tracon.yaml", "scripts:\n  main.sh:\n    arguments: stdin\n")
	h.must("policy", "set", "--enabled", "--interpreters", "sh")
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(h.must("grant", "review", h.skill, "main.sh"))
	h.must("grant", "add", h.skill, "main.sh", "--digest", digest)
	return h
}

// must runs a command for acme, and returns what it printed.
func (h *aHost) must(words ...string) string {
	h.t.Helper()
	out, err := h.command(append([]string{"--tenant", "acme"}, words...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%v: %v: %s", words, err, out)
	}
	return string(out)
}

// run runs the script, and returns the exit code, and what was printed.
func (h *aHost) run(args string) (code int, stdout, stderr string) {
	h.t.Helper()
	c := h.command("--tenant", "acme", "run", h.skill, "main.sh", "--args", args)
	var out, err strings.Builder
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); e != nil && c.ProcessState == nil {
		h.t.Fatal(e)
	}
	return c.ProcessState.ExitCode(), out.String(), err.String()
}

// R2, R5, R21, case 55: a granted script is run by another process, and stands in both
// logs; when that is killed in the middle, nobody knows what became of it, and it is
// run no second time. Doctor says what is only claimed, and what cannot be reached.
func TestRemote(t *testing.T) {
	r := newRunner(t, nil)
	h := newHost(t, r, "read args; case $args in *wait*) p=$(echo \"$args\" | cut -d'\"' -f4); cat \"$p\";; esac; echo \"got $args\"; exit 3\n", "")
	if code, stdout, stderr := h.run(`{"a":"b"}`); code != 3 || stdout != "got {\"a\":\"b\"}\n" {
		t.Fatalf("got %d, %q, %q", code, stdout, stderr)
	}
	if log := r.verify(); strings.Count(log, `"kind": "admission"`) != 1 || !strings.Contains(log, "toldRun") {
		t.Errorf("the runner's log: %s", log)
	}
	out, err := h.command("doctor", "--tenant", "acme").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "as it claims") {
		t.Errorf("doctor: %v: %s", err, out)
	}

	pipe := filepath.Join(r.folder, "wait")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	type ending struct {
		code   int
		stderr string
	}
	came := make(chan ending, 1)
	go func() {
		code, _, stderr := h.run(`{"wait":"` + pipe + `"}`)
		came <- ending{code, stderr}
	}()
	var end *os.File
	eventually(t, "the script waits", func() bool {
		fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			end = os.NewFile(uintptr(fd), pipe)
		}
		return err == nil
	})
	defer func() { _ = end.Close() }()
	r.kill()
	if got := <-came; got.code != 125 || !strings.Contains(got.stderr, "unknown") && !strings.Contains(got.stderr, "may have run") {
		t.Errorf("killed in the middle: %+v", got)
	}
	log, err := h.command("--tenant", "acme", "audit", "list", "--json").Output()
	if n := strings.Count(string(log), `"kind": "admission"`); err != nil || n != 2 || !strings.Contains(string(log), "unknown") {
		t.Errorf("the host's log has %d admissions, want 2, one of them unknown: %v\n%s", n, err, log)
	}
	if code, _, stderr := h.run(`{}`); code != 125 {
		t.Errorf("nobody is there: %d %s", code, stderr)
	}
	if out, err := h.command("--tenant", "acme", "doctor").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") {
		t.Errorf("doctor, while nobody is there: %v: %s", err, out)
	}
}

// M10, M11: where the runner asks for tickets, those of the host's key open it, and none
// and those of another key do not; the runs count as not started.
func TestRemoteTickets(t *testing.T) {
	t.Parallel() // it waits for most of its time
	folder := t.TempDir()
	write := func(name, kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func(name string) (private, public string) {
		pub, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		private = write(name, "PRIVATE KEY", der, err)
		der, err = x509.MarshalPKIXPublicKey(pub)
		return private, write(name+".pub", "PUBLIC KEY", der, err)
	}
	ours, public := pair("ours")
	theirs, _ := pair("theirs")
	r := newRunner(t, map[string]string{"TRACON_RUNNER_TICKETS": "true", "TRACON_RUNNER_TICKET_KEYS": "one=" + public})
	const script = "echo there\n"
	for _, tt := range []struct {
		name, key string
		code      int
	}{{"none", "", 125}, {"another key's", theirs, 125}} {
		more := ""
		if tt.key != "" {
			more = "remote_ticket_key: " + tt.key + "\nremote_name: runner\n"
		}
		if code, stdout, stderr := newHost(t, r, script, more).run(`{}`); code != tt.code || stdout != "" || !strings.Contains(stderr, "not start") {
			t.Errorf("%s: %d, %q, %q", tt.name, code, stdout, stderr)
		}
	}
	h := newHost(t, r, script, "remote_ticket_key: "+ours+"\nremote_name: runner\n")
	eventually(t, "tickets that were signed after the runner's start hold", func() bool { // the first seconds are closed: see ticket.Verifier
		code, stdout, _ := h.run(`{}`)
		return code == 0 && stdout == "there\n"
	})
}

// R28, R30: the suite of the wire holds of our runner, and its exit code says so; what
// answers and is no runner is found out.
func TestConformanceRunner(t *testing.T) {
	r := newRunner(t, nil)
	s := newServed(t, map[string]string{"TRACON_KEY": r.one})
	out, err := s.command("conformance", "runner", r.Address, "--tenant", "acme").CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 BROKEN") || !strings.Contains(string(out), "runner runner, tier") ||
		!strings.Contains(string(out), "live output") || strings.Contains(string(out), "not offered") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = s.command("conformance", "runner", r.Address, "--tenant", "beta", "--json").CombinedOutput()
	if code, _ := errors.AsType[*exec.ExitError](err); code == nil || code.ExitCode() != 3 || !strings.Contains(string(out), `"ok": false`) {
		t.Errorf("with a key of another tenant: %v: %s", err, out)
	}
}
