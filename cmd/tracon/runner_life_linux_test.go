package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// write writes a file into the folder.
func (s *served) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// reload has the process read its configuration again, and waits until it says so.
func (s *served) reload(says string) string {
	s.t.Helper()
	s.forget()
	s.signal(syscall.SIGHUP)
	return s.said(says)
}

// R8, R11: SIGHUP has a runner's file hold as a whole, or not at all; what needs a restart
// is said; runs under way go on, whatever the file says now.
func TestRunnerReloads(t *testing.T) {
	t.Parallel() // it waits for processes
	const head = "runner_listen: 127.0.0.1:0\nexecutor: process\n"
	r := &aRunner{served: newServed(t, map[string]string{"TRACON_CONFIG": "tracon.yaml"})}
	delete(r.env, "TRACON_EXECUTOR")
	r.write("tracon.yaml", head+"enabled: true\nruntimes: {sh: /bin/sh}\n")
	r.one = r.key("one", "acme")
	r.serve()
	letGo, came := r.holdUp()
	is := func(name string, want int, code string) {
		t.Helper()
		if status, body, err := r.post(t.Context(), r.one, "acme", "echo there\n", ""); err != nil || status != want || !strings.Contains(body, code) {
			t.Errorf("%s: got %d %s, %v, want %d and %q", name, status, body, err, want, code)
		}
	}
	is("at first", 200, "there")
	r.write("tracon.yaml", head+"enabled: true\nruntimes: {bash-5: /bin/sh}\nslots: 7\nrunner_name: another\nrunner_max_timeout: 10m\n")
	r.reload(`"msg":"reloaded"`)
	if line := r.said("hold only after a restart"); !strings.Contains(line, `["slots","runner_name"]`) {
		t.Errorf("it says %s", line)
	}
	is("the runtime is gone", 422, `"interpreter"`)
	for name, text := range map[string]string{
		"not YAML": "enabled: [\n", "unknown": "enabled: true\nslot: 1\n", "unsafe": "enabled: true\nruntimes: {sh: /bin/sh}\nrunner_tickets: true\n",
		"no runtimes": "enabled: true\n", "a runtime that is not there": "enabled: true\nruntimes: {sh: /no/such/shell}\n",
		"keys that are not there": "enabled: true\nruntimes: {sh: /bin/sh}\nrunner_ticket_keys: {one: none.pub}\n",
		"a fleet without a key":   "enabled: true\nruntimes: {sh: /bin/sh}\nfleet_join: main\n",
	} {
		r.write("tracon.yaml", head+text)
		r.reload("not reloaded")
		is(name, 422, `"interpreter"`)
	}
	r.write("tracon.yaml", head+"enabled: true\nruntimes: {sh: /bin/sh}\n")
	r.reload(`"msg":"reloaded"`)
	is("it is back", 200, "there")
	r.write("tracon.yaml", head+"enabled: false\nruntimes: {sh: /bin/sh}\n")
	r.reload(`"enabled":false`)
	is("switched off", 403, `"switch"`)
	letGo()
	if body := <-came; !strings.Contains(body, "went-on") {
		t.Errorf("the run under way got %s", body)
	}
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// B3, R24: told a second time to stop, a runner stops the run under way, writes its ending
// and tells the host, and the exit code is 0.
func TestRunnerIsToldTwiceToStop(t *testing.T) {
	t.Parallel()
	r := newRunner(t, map[string]string{"TRACON_DRAIN": "10m"})
	_, came := r.holdUp()
	r.signal(syscall.SIGTERM)
	r.said("the runner drains")
	r.signal(syscall.SIGTERM)
	r.said("told again to stop")
	if body := <-came; !strings.Contains(body, `"cancelled"`) || strings.Contains(body, "notStarted") {
		t.Errorf("the host is told %s", body)
	}
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if log := r.verify(); !strings.Contains(log, `"ending": "cancelled"`) {
		t.Errorf("the log does not say that it was cancelled:\n%s", log)
	}
}

// R21, R28: the runs under way of a fleet outlive a reload on either side: that of the
// control plane, and that of the runner, which joins again with what it can run now, and
// stays drained where an operator said so.
func TestFleetReloads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "1m", "r1")
	r := f.runner("r1")
	delete(r.env, "TRACON_RUNTIMES")
	r.env["TRACON_CONFIG"] = "runner.yaml"
	r.write("runner.yaml", "executor: process\nruntimes: {sh: /bin/sh}\n")
	f.join("r1")
	f.await("the runner is there", idle(1))
	c := f.setUpBy("runtime:sh", "acme", holding)
	id, letGo := f.hold(c)
	runtimes := func(want string) {
		t.Helper()
		f.await("the runner has "+want, func(list []fleetLine) bool { return len(list) == 1 && strings.Join(list[0].Runtimes, " ") == want })
	}
	f.reload(`"msg":"reloaded"`)
	r.write("runner.yaml", "executor: process\nruntimes: {sh: /bin/sh, bash-5: /bin/sh}\n")
	r.reload(`"msg":"reloaded"`)
	eventually(t, "the runner has both", func() bool {
		var list []fleetLine
		if err := json.Unmarshal([]byte(f.operator("runner", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if strings.Join(l.Runtimes, " ") == "bash-5 sh" && l.State == "ready" {
				return true
			}
		}
		return false
	})
	letGo()
	eventually(t, "the run ends", func() bool {
		run, err := c.Run(t.Context(), id)
		return err == nil && run.State == client.RunEnded
	})
	if run, err := c.Run(t.Context(), id); err != nil || run.Code != "" || run.Stdout == nil || !strings.Contains(*run.Stdout, "went-on") {
		t.Errorf("the run under way ended as %+v, %v", run, err)
	}
	runtimes("bash-5 sh") // the membership before is over
	f.operator("runner", "drain", "r1")
	r.write("runner.yaml", "executor: process\nruntimes: {sh: /bin/sh}\n")
	r.reload(`"msg":"reloaded"`)
	runtimes("sh")
	f.await("it drains still", func(list []fleetLine) bool { return len(list) == 1 && list[0].State == "draining" })
}
