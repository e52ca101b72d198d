package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A told is one line of the doctor's.
type told struct {
	What   string
	OK     bool
	Detail string
	Remedy string
}

// doctor returns the doctor's lines that begin so, with further variables.
func (s *served) doctor(what string, env map[string]string) (list []told) {
	s.t.Helper()
	c := s.command("doctor", "--json")
	for k, v := range env {
		c.Env = append(c.Env, k+"="+v)
	}
	out, err := c.Output()
	var x struct{ Findings []told }
	if json.Unmarshal(out, &x) != nil {
		s.t.Fatalf("the doctor says %v: %s", err, out)
	}
	for _, f := range x.Findings {
		if strings.HasPrefix(f.What, what) {
			list = append(list, f)
		}
	}
	return list
}

// says asks the doctor until there is one line that begins so, in order where there is no
// remedy: on a busy machine who is asked may answer too late for one look.
func (s *served) says(t *testing.T, what string, env map[string]string, detail, remedy string) {
	t.Helper()
	var list []told
	for end := time.Now().Add(patience); time.Now().Before(end); {
		list = s.doctor(what, env)
		if len(list) == 1 && list[0].OK == (remedy == "") && strings.Contains(list[0].Detail, detail) && strings.Contains(list[0].Remedy, remedy) && (remedy != "" || list[0].Remedy == "") {
			return
		}
	}
	t.Errorf("B8: the doctor says %+v, want %q and the remedy %q", list, detail, remedy)
}

// asker is an installation whose scripts r runs, with the key of acme. It has nothing to
// run.
func asker(t *testing.T, r *aRunner, env map[string]string) *served {
	t.Helper()
	all := map[string]string{"TRACON_EXECUTOR": "remote", "TRACON_REMOTE": r.Address, "TRACON_REMOTE_REACH": "loopback", "TRACON_REMOTE_KEY_FILE": "runner.key", "TRACON_CONFIG": "tracon.yaml"}
	maps.Copy(all, env)
	s := newServed(t, all)
	for name, text := range map[string]string{
		"runner.key":  r.one + "\n",
		"other.key":   strings.Replace(r.one, r.one[len(r.one)-4:], "aaaa", 1) + "\n",
		"tracon.yaml": "enabled: true\ninterpreters: {sh: 'runtime:sh'}\n",
		"more.yaml":   "enabled: true\ninterpreters: {sh: 'runtime:sh', py: 'runtime:python-3.12'}\n",
	} {
		s.write(name, text)
	}
	return s
}

// B8, M09, M10: the doctor of a host whose scripts run elsewhere says in one line who is
// reached and what it can run, by the runner's own word; else what is amiss, and what to
// do about it.
func TestDoctorRemote(t *testing.T) {
	t.Parallel() // it waits for processes
	keys := t.TempDir()
	ticketKeys(t, keys)
	others := t.TempDir()
	ticketKeys(t, others)
	r := newRunner(t, map[string]string{"TRACON_RUNNER_TICKETS": "true", "TRACON_RUNNER_TICKET_KEYS": "one=" + filepath.Join(keys, "ticket.pub"), "TRACON_SLOTS": "3", "TRACON_SLOTS_PER_TENANT": "3"})
	s := asker(t, r, map[string]string{"TRACON_REMOTE_TICKET_KEY": filepath.Join(keys, "ticket.pem"), "TRACON_REMOTE_NAME": "runner"})
	for _, tt := range []struct {
		name           string
		env            map[string]string
		detail, remedy string
	}{
		{"in order", nil, "runner at " + r.Address + ": tier process, runtimes sh, 0 of 3 places taken", ""},
		{"a runtime is missing", map[string]string{"TRACON_CONFIG": "more.yaml"}, "runtimes sh", "nobody has the runtime python-3.12"},
		{"no key for tickets", map[string]string{"TRACON_REMOTE_TICKET_KEY": ""}, "tier process", "set remote_ticket_key"},
		{"another key for tickets", map[string]string{"TRACON_REMOTE_TICKET_KEY": filepath.Join(others, "ticket.pem")}, "tier process", "it does not know the key of remote_ticket_key"},
		{"it calls itself otherwise", map[string]string{"TRACON_REMOTE_NAME": "another"}, "runner at ", "remote_name says another"},
		{"a key that is none", map[string]string{"TRACON_REMOTE_KEY_FILE": "other.key"}, "status 401", "tracon runner key create"},
		{"nobody is there", map[string]string{"TRACON_REMOTE": "http://127.0.0.1:1"}, "refused", "see that `tracon runner serve` runs there"},
		{"no key at all", map[string]string{"TRACON_REMOTE_KEY_FILE": "none.key"}, "none.key", "mend what the sentence names"},
	} {
		t.Run(tt.name, func(t *testing.T) { s.says(t, "runner", tt.env, tt.detail, tt.remedy) })
	}
}

// B8: a runner that drains is told, while the run under way goes on.
func TestDoctorWhileARunnerDrains(t *testing.T) {
	t.Parallel()
	r := newRunner(t, map[string]string{"TRACON_DRAIN": "10m"})
	s := asker(t, r, nil)
	letGo, came := r.holdUp()
	r.signal(syscall.SIGTERM)
	r.said("the runner drains")
	s.says(t, "runner", nil, "draining", "it drains and takes no more runs")
	letGo()
	if body := <-came; !strings.Contains(body, "went-on") {
		t.Errorf("the run under way got %s", body)
	}
}
