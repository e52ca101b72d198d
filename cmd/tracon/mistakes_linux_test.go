package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// came is what an operator who runs a script of a tenant is told, and what its model would be.
type came struct {
	code   int
	error  struct{ Code, Reason, Remedy, Model string }
	stderr string
}

// tries runs the example script by the verb, with further variables.
func (s *served) tries(t *testing.T, tenant string, env map[string]string) came {
	t.Helper()
	c := s.command("--tenant", tenant, "run", "--json", filepath.Join(skills(t), "unit-converter"), "scripts/convert.py", "--", "--value", "26.2", "--factor", "1.60934")
	for k, v := range env {
		c.Env = append(c.Env, k+"="+v)
	}
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	var got came
	var told struct {
		Error *struct{ Code, Reason, Remedy, Model string }
	}
	if err := json.Unmarshal([]byte(stdout.String()), &told); err != nil {
		t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
	}
	got.code, got.stderr = c.ProcessState.ExitCode(), stderr.String()
	if told.Error != nil {
		got.error = *told.Error
	}
	return got
}

// opens lets the tenants run the example script.
func (s *served) opens(t *testing.T, tenants ...string) {
	t.Helper()
	for _, tenant := range tenants {
		for _, words := range [][]string{{"policy", "set", "--enabled", "--interpreters", "py"}, {"grant", "review", filepath.Join(skills(t), "unit-converter"), "scripts/convert.py"}} {
			out, err := s.command(append([]string{"--tenant", tenant}, words...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v: %s", words, err, out)
			}
			if words[0] != "grant" {
				continue
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			add := append(strings.Fields(lines[len(lines)-1])[1:], "--tier", "process")
			if out, err := s.command(append([]string{"--tenant", tenant}, add...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", add, err, out)
			}
		}
	}
}

// is holds what came of a mistake: the call was not started, the operator is told the
// detail and the remedy, and the model neither, nor anything else of the hosts.
func (got came) is(t *testing.T, detail, remedy string, secret ...string) {
	t.Helper()
	started := got.error.Code == "executor_unavailable" // else nothing was, and no model is told of it
	if got.code != 125 || !started && got.error.Code != "not_started" || !strings.Contains(got.error.Reason, detail) || !strings.Contains(got.error.Remedy, remedy) {
		t.Errorf("B8: exit code %d, %+v, %s\nwant %q and the remedy %q", got.code, got.error, got.stderr, detail, remedy)
	}
	for _, not := range append(secret, "localhost", "127.0.0.1", "certificate", "runner", "ticket", "python-3.12", os.TempDir()) {
		if started && got.error.Model == "" || strings.Contains(got.error.Model, not) {
			t.Errorf("R26: the model is told %q, which has %q", got.error.Model, not)
		}
	}
}

// B8, M04, M10, R26: what an operator gets wrong where a runner on another machine runs the
// scripts is told with what to do about it, and nothing of it to the tenant's model.
func TestMistakesOfWhoAsksARunner(t *testing.T) {
	t.Parallel() // it waits for processes
	keys := t.TempDir()
	at := func(name string) string { return filepath.Join(keys, name) }
	ours, theirs := newSigner(t, keys, "ours"), newSigner(t, keys, "theirs")
	ours.server("tls")
	ours.names("control", time.Hour, "control.example.com")
	ours.names("old", -time.Minute, "control.example.com")
	ours.names("nobody", time.Hour, "nobody.example.com")
	theirs.names("theirs-control", time.Hour, "control.example.com")
	ours.names("server-old", -time.Minute, "localhost")
	ticketKeys(t, keys)
	r := newRunner(t, map[string]string{"TRACON_RUNTIMES": "python-3.12=/usr/bin/python3", "TRACON_TLS_CERT": at("tls.pem"), "TRACON_TLS_KEY": at("tls.key"),
		"TRACON_RUNNER_CLIENT_CA": at("ours.ca"), "TRACON_RUNNER_CLIENTS": "control.example.com=acme"})
	s := asker(t, r, map[string]string{"TRACON_REMOTE_CA": at("ours.ca")})
	s.write("tracon.yaml", "enabled: true\ninterpreters: {py: 'runtime:python-3.12'}\n")
	s.write("more.yaml", "enabled: true\ninterpreters: {py: 'runtime:python-3.99'}\n")
	s.opens(t, "acme", "beta")
	if got := s.tries(t, "acme", nil); got.code != 0 {
		t.Fatalf("with nothing amiss: %+v", got)
	}
	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	expired.TLS = ours.serves("server-old")
	expired.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what is wanted
	expired.StartTLS()
	defer expired.Close()
	by := func(name string) map[string]string {
		return map[string]string{"TRACON_REMOTE_KEY_FILE": "", "TRACON_REMOTE_CERT": at(name + ".pem"), "TRACON_REMOTE_CERT_KEY": at(name + ".key")}
	}
	if got := s.tries(t, "acme", by("control")); got.code != 0 {
		t.Fatalf("by a certificate, with nothing amiss: %+v", got)
	}
	for _, tt := range []struct {
		name, tenant   string
		env            map[string]string
		detail, remedy string
	}{
		{"a wrong key", "acme", map[string]string{"TRACON_REMOTE_KEY_FILE": "other.key"}, "status 401", "tracon runner key create"},
		{"a key of another tenant", "beta", nil, "may not ask for tenant", "--tenants"},
		{"a certificate of another tenant", "beta", by("control"), "may not ask for tenant", "runner_clients"},
		{"a certificate of nobody who is known", "acme", by("nobody"), "status 401", "runner_clients"},
		{"an expired certificate of ours", "acme", by("old"), "unreachable", "have remote_cert made anew"},
		{"a certificate that somebody else signed", "acme", by("theirs-control"), "unreachable", "have remote_cert made anew"},
		{"another authority", "acme", map[string]string{"TRACON_REMOTE_CA": at("theirs.ca")}, "unknown authority", "remote_ca"},
		{"the runner's certificate has expired", "acme", map[string]string{"TRACON_REMOTE": strings.Replace(expired.URL, "127.0.0.1", "localhost", 1)}, "expired", "tls_cert"},
		{"a runtime that is missing", "acme", map[string]string{"TRACON_CONFIG": "more.yaml"}, "python-3.99", "runtimes"},
		{"nobody is there", "acme", map[string]string{"TRACON_REMOTE": "https://127.0.0.1:1"}, "refused", "tracon runner serve"},
		{"tickets where nobody knows who signs them", "acme", map[string]string{"TRACON_REMOTE_TICKET_KEY": at("ticket.pem"), "TRACON_REMOTE_NAME": "runner"}, "ticket", "runner_ticket_keys"},
		{"another's name", "acme", map[string]string{"TRACON_REMOTE_NAME": "another"}, "another", ""},
	} {
		t.Run(tt.name, func(t *testing.T) { s.tries(t, tt.tenant, tt.env).is(t, tt.detail, tt.remedy, tt.tenant, "control") })
	}
}

// B8, M10, M12, R26: the same of a fleet: a tier, a runtime or a label that no runner has, a
// tenant that nobody takes or that has no pool, a ticket that does not hold. A runner that
// drains takes no more, while what is under way goes on.
func TestMistakesOfAFleet(t *testing.T) {
	t.Parallel() // it waits for processes
	f := newWithin(t)
	other := t.TempDir()
	ticketKeys(t, other)
	r := f.runners["r1"]
	delete(r.env, "TRACON_RUNTIMES")
	r.env["TRACON_CONFIG"], r.env["TRACON_FLEET_TENANTS"] = "runner.yaml", "acme"
	r.write("runner.yaml", "runtimes: {python-3.12: /usr/bin/python3, sh: /bin/sh}\n")
	r.kill()
	f.join("r1")
	f.await("the runner is there", idle(1))
	c := f.setUpBy("runtime:sh", "acme", holding)
	id, letGo := f.hold(c)

	s := newServed(t, nil) // an operator's, whose house is his own
	for _, name := range []string{"FLEET_TIER", "TRUST_CLAIMED", "FLEET_TICKET_KEY", "FLEET_URLS", "FLEET_SEED_FILE"} {
		s.env["TRACON_"+name] = f.env["TRACON_"+name]
	}
	s.env["TRACON_EXECUTOR"], s.env["TRACON_CONFIG"] = "fleet", "tracon.yaml"
	s.write("tracon.yaml", "enabled: true\ninterpreters: {py: 'runtime:python-3.12'}\n")
	s.write("more.yaml", "enabled: true\ninterpreters: {py: 'runtime:python-3.99'}\n")
	s.opens(t, "acme", "beta")
	if got := s.tries(t, "acme", nil); got.code != 0 {
		t.Fatalf("with nothing amiss: %+v", got)
	}
	for _, tt := range []struct {
		name, tenant   string
		env            map[string]string
		detail, remedy string
	}{
		{"a tier that no runner has", "acme", map[string]string{"TRACON_FLEET_TIER": "vm"}, "no runner takes such runs", "the tier"},
		{"a runtime that no runner has", "acme", map[string]string{"TRACON_CONFIG": "more.yaml"}, "no runner takes such runs", "the runtime"},
		{"a label that no runner has", "acme", map[string]string{"TRACON_FLEET_LABEL": "gpu"}, "no runner takes such runs", "the label"},
		{"a tenant that no runner takes", "beta", nil, "may not ask for tenant", "fleet_tenants"},
		{"a tenant without a pool", "beta", map[string]string{"TRACON_FLEET_POOLS": "main acme"}, "no pool", "fleet_pools"},
		{"a ticket of somebody else", "acme", map[string]string{"TRACON_FLEET_TICKET_KEY": filepath.Join(other, "ticket.pem")}, "no key of the peer signed it", "its log says why"},
		{"no ticket", "acme", map[string]string{"TRACON_FLEET_TICKET_KEY": ""}, "none came", "its log says why"},
	} {
		t.Run(tt.name, func(t *testing.T) { s.tries(t, tt.tenant, tt.env).is(t, tt.detail, tt.remedy, tt.tenant, "main", "r1") })
	}
	f.operator("runner", "drain", "r1")
	if out, err := s.command("--tenant", "acme", "policy", "set", "--timeout", "1s").CombinedOutput(); err != nil { // which is waited for a place
		t.Fatalf("%v: %s", err, out)
	}
	s.tries(t, "acme", nil).is(t, "could not start the script", "tracon runner list")
	letGo()
	eventually(t, "the run under way ends", func() bool {
		run, err := c.Run(t.Context(), id)
		return err == nil && run.State == client.RunEnded
	})
	if run, err := c.Run(t.Context(), id); err != nil || run.Code != "" || run.Stdout == nil || *run.Stdout != "begun\nwent-on\n" {
		t.Errorf("the run under way came to %+v, %v", run, err)
	}
}
