package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/fleet"
)

// A page is what a part of one of the pages says is to be written and done, as it stands
// there but for what is another on this machine.
type page struct {
	t      *testing.T
	blocks []string // those with a fence, in order
	etc    string   // in the place of /etc/tracon
}

// newPage reads the part of docs/NAME below the heading, which has n blocks. The pairs are
// what is another here; each must be there.
func newPage(t *testing.T, name, heading string, n int, pairs ...string) *page {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	p := &page{t: t, etc: t.TempDir()}
	for i, pairs := 0, append(pairs, "/etc/tracon", p.etc); i < len(pairs); i += 2 {
		if !strings.Contains(part, pairs[i]) {
			t.Errorf("docs/%s, %q, has no %q", name, heading, pairs[i])
		}
		part = strings.ReplaceAll(part, pairs[i], pairs[i+1])
	}
	for _, m := range regexp.MustCompile("(?sm)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(part, -1) {
		p.blocks = append(p.blocks, m[1])
	}
	if !ok || len(p.blocks) != n {
		t.Fatalf("docs/%s, %q, has %d blocks, want %d", name, heading, len(p.blocks), n)
	}
	return p
}

func (p *page) file(name string) string { return filepath.Join(p.etc, name) }

// keep writes a block into a file, with more below it.
func (p *page) keep(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.file(name)
}

// shell has the shell do what the lines say, in that folder, where tracon is this binary.
func (p *page) shell(s *served, lines string) string {
	p.t.Helper()
	bin := p.t.TempDir()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "tracon")); err != nil {
		p.t.Fatal(err)
	}
	c := exec.CommandContext(p.t.Context(), "/bin/bash", "-e", "-o", "pipefail", "-c", lines)
	for k, v := range s.env {
		if k == "PATH" {
			v = bin + ":" + v
		}
		c.Env = append(c.Env, k+"="+v)
	}
	c.Dir = p.etc
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		p.t.Fatalf("%v: %s\n%s%s", err, lines, out, stderr.String())
	}
	return string(out)
}

// typed are the commands of a block that shows what is typed.
func typed(block string) (lines []string) {
	for line := range strings.Lines(block) {
		if line, ok := strings.CutPrefix(line, "$ "); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// R28, M04, B8: who sets a runner up by the guide, and a control plane that asks it, over
// TLS by key and by certificate, gets there by what stands in the guide.
func TestGuideRunner(t *testing.T) {
	t.Parallel() // it waits for processes
	p := newPage(t, "operators-guide.md", "Running a runner", 5,
		"runner.example.com", "localhost", "0.0.0.0:8788", "127.0.0.1:0", "[private]", "[loopback]",
		"executor: sandbox", "executor: process", "require_walls: [memory, processes]\n", "", "examples/skills", skills(t))
	certificates, runner, start, host, ask := p.blocks[0], p.blocks[1], typed(p.blocks[2]), p.blocks[3], typed(p.blocks[4])
	r := newServed(t, nil)
	p.shell(r, certificates)

	for _, name := range []string{"TRACON_EXECUTOR", "TRACON_LISTEN", "TRACON_DATA"} {
		delete(r.env, name)
	}
	p.keep("runner.yaml", runner)
	if len(start) != 3 || !strings.HasPrefix(start[0], "export TRACON_CONFIG="+p.file("runner.yaml")+" ") || start[2] != "tracon runner serve\n" {
		t.Fatalf("the runner is started by %q", start)
	}
	r.env["TRACON_CONFIG"], r.env["TRACON_DATA"] = p.file("runner.yaml"), filepath.Join(r.folder, "data")
	p.keep("runner.key", p.shell(r, start[1]))
	r.startAs("runner", "serve", "--json")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.Address, "https://"))
	if err != nil {
		t.Fatal(err)
	}

	h := newServed(t, nil)
	delete(h.env, "TRACON_EXECUTOR")
	h.env["TRACON_CONFIG"] = p.file("tracon.yaml")
	byKey := "remote_key_file: " + p.file("runner.key")
	host = strings.ReplaceAll(host, ":8788", ":"+port)
	p.keep("tracon.yaml", host)
	if len(ask) != 6 || ask[0] != "export TRACON_CONFIG="+p.file("tracon.yaml")+"\n" || !strings.Contains(host, byKey) {
		t.Fatalf("the control plane asks by %q", ask)
	}
	said := ""
	for _, line := range ask[1:] {
		said += p.shell(h, strings.ReplaceAll(line, ":8788", ":"+port))
	}
	if strings.Count(said, "24 held, 0 BROKEN") != 2 || !strings.Contains(said, "runner-1 at https://localhost:") || !strings.HasSuffix(said, `"result": 42.1647}`+"\n") {
		t.Errorf("the guide's commands say:\n%s", said)
	}

	// By the certificate in place of the key.
	p.keep("tracon.yaml", strings.ReplaceAll(strings.Replace(host, byKey, "", 1), "\n# remote_cert", "\nremote_cert"))
	if said := p.shell(h, ask[5]); !strings.HasSuffix(said, `"result": 42.1647}`+"\n") {
		t.Errorf("by the certificate: %s", said)
	}
	for _, peer := range []string{"control-plane", "control.example.com"} {
		if log := p.shell(r, "tracon audit list --all-tenants --kind admission --json"); !strings.Contains(log, `"`+peer+`"`) {
			t.Errorf("the runner's log has nothing of %s: %s", peer, log)
		}
	}
}

// skills is the folder of the examples.
func skills(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../examples/skills")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// R28, B8, B9: who sets a fleet up by the page gets there by what stands on it: a control
// plane with the server within it, two runners, an operator who lists and drains them, and
// a script that one of them runs.
func TestScalingPage(t *testing.T) {
	t.Parallel() // it waits for processes
	p := newPage(t, "scaling.md", "A fleet, step by step", 5, "fleet_listen: 10.0.0.5:4222", "fleet_listen: 127.0.0.1:0")
	keys, plane, runner, operator, verbs := p.blocks[0], p.blocks[1], p.blocks[2], p.blocks[3], p.blocks[4]
	f := &aFleet{served: newServed(t, map[string]string{"TRACON_FLEET_TIER": "process"}), folder: p.etc, runners: map[string]*served{}}
	ours := newSigner(t, p.etc, "ours")
	ours.server("tls")
	p.shell(f.served, "mv ours.ca ca.pem; mv tls.pem tls.crt")

	public := func(name string) string {
		lines := strings.Split(strings.TrimSpace(p.shell(f.served, "tracon runner join-key "+name+".seed")), "\n")
		return lines[len(lines)-1]
	}
	// The first runner's by the page.
	for _, one := range []struct{ word, key string }{{"UA…", strings.TrimSpace(p.shell(f.served, keys))}, {"UB…", public("fleet2")}} {
		if strings.Count(plane, one.word) != 1 {
			t.Fatalf("the control plane's file has no place for the key %s", one.word)
		}
		plane = strings.Replace(plane, one.word, one.key, 1)
	}
	plane += "fleet_hosts: [\"main " + public("operator") + "\"]\n"
	f.env["TRACON_CONFIG"] = p.keep("tracon.yaml", plane)
	delete(f.env, "TRACON_EXECUTOR")
	f.start()
	var joined struct{ Address string }
	if err := json.Unmarshal([]byte(f.said("runners may join")), &joined); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"runner-1", "runner-2"} {
		text := strings.ReplaceAll(runner, "10.0.0.5:4222", joined.Address)
		if i > 0 {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "runner-1", name), "fleet.seed", "fleet2.seed")
		}
		r := newServed(t, map[string]string{"TRACON_CONFIG": p.keep(name+".yaml", text), "TRACON_RUNNER_LISTEN": "127.0.0.1:0"})
		f.runners[name] = r
		r.startAs("runner", "serve", "--json")
	}
	p.keep("tracon.yaml", plane+strings.ReplaceAll(operator, "10.0.0.5:4222", joined.Address))
	f.await("both runners are there", idle(2))
	f.says(t, "pool main", nil, "runner-1: tier process, runtimes python-3.12, 0 of", "")
	p.shell(f.served, "tracon --tenant acme policy set --enabled --interpreters py")
	run := "tracon --tenant acme run " + skills(t) + "/unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934"
	if said := p.shell(f.served, strings.Replace(run, " run ", " run --grant ", 1)); !strings.HasSuffix(said, `"result": 42.1647}`+"\n") {
		t.Errorf("the run says %s", said)
	}
	list, rest, _ := strings.Cut(verbs, "\n")
	drain, _, _ := strings.Cut(rest, "\n")
	if said := p.shell(f.served, drain+"\n"+list); !regexp.MustCompile(`1 told: runner-1 takes no more runs\n(.*\n)*main +runner-1 +draining .*\nmain +runner-2 +ready `).MatchString(said) {
		t.Errorf("the verbs of the fleet say %s", said)
	}
}

// R28: what the page has a NATS server of one's own allow is what is said and heard.
func TestScalingPageHasThePermissions(t *testing.T) {
	p := newPage(t, "scaling.md", "Pools", 1)
	hear, say := fleet.HostSubjects("main")
	hear2, say2 := fleet.RunnerSubjects("main", "runner-1")
	for _, list := range [][2]any{{"subscribe", hear}, {"publish", say}, {"subscribe", hear2}, {"publish", say2}} {
		text, err := json.Marshal(list[1])
		if err != nil {
			t.Fatal(err)
		}
		quoted := strings.NewReplacer(`","`, `", "`, `\u003e`, ">").Replace(string(text))
		if line := "        " + list[0].(string) + ": " + quoted + "\n"; !strings.Contains(p.blocks[0], line) {
			t.Errorf("docs/scaling.md lacks the line:%s", line)
		}
	}
}
