package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// aFleet is a `tracon serve` with the server of a fleet, and runners in processes of
// their own.
type aFleet struct {
	*served
	folder  string // of keys and proofs
	runners map[string]*served
}

// newFleet starts a control plane that knows the runners, and none of them.
func newFleet(t *testing.T, names ...string) *aFleet {
	t.Helper()
	f := &aFleet{folder: t.TempDir(), runners: map[string]*served{}}
	env := map[string]string{"TRACON_EXECUTOR": "fleet", "TRACON_FLEET_LISTEN": "127.0.0.1:0", "TRACON_FLEET_TIER": "process", "TRACON_TRUST_CLAIMED": "true",
		"TRACON_FLEET_TICKET_KEY": f.file("ticket.pem"), "TRACON_SLOTS": "8", "TRACON_SLOTS_PER_TENANT": "8"}
	f.served = newServed(t, env)
	f.tickets(t)
	var members []string
	for _, name := range names {
		members = append(members, "main/"+name+" "+f.joinKey(name))
	}
	f.env["TRACON_FLEET_MEMBERS"], f.env["TRACON_FLEET_HOSTS"] = strings.Join(members, ","), "main "+f.joinKey("operator")
	f.serve()
	return f
}

func (f *aFleet) file(name string) string { return filepath.Join(f.folder, name) }

// tickets makes the key that signs tickets.
func (f *aFleet) tickets(t *testing.T) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{"ticket.pem": private, "ticket.pub": public} {
		kind, encode := "PRIVATE KEY", x509.MarshalPKCS8PrivateKey
		if name == "ticket.pub" {
			kind, encode = "PUBLIC KEY", x509.MarshalPKIXPublicKey
		}
		der, err := encode(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// joinKey makes a key, and returns its public half.
func (f *aFleet) joinKey(name string) string {
	f.t.Helper()
	out, err := f.command("runner", "join-key", f.file(name+".seed")).Output()
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// serve starts the control plane, at the address that it had before.
func (f *aFleet) serve() {
	f.t.Helper()
	f.start()
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(f.said("runners may join")), &line); err != nil {
		f.t.Fatal(err)
	}
	f.env["TRACON_FLEET_LISTEN"] = line.Address
}

// join starts the runner of that name, or starts it again.
func (f *aFleet) join(name string) *served {
	f.t.Helper()
	r := f.runners[name]
	if r == nil {
		r = newServed(f.t, map[string]string{"TRACON_ENABLED": "true", "TRACON_RUNTIMES": "sh=/bin/sh", "TRACON_RUNNER_LISTEN": "127.0.0.1:0", "TRACON_RUNNER_NAME": name,
			"TRACON_RUNNER_TICKETS": "true", "TRACON_RUNNER_TICKET_KEYS": "fleet=" + f.file("ticket.pub"), "TRACON_SLOTS": "4", "TRACON_SLOTS_PER_TENANT": "4",
			"TRACON_FLEET_JOIN": "main", "TRACON_FLEET_TENANTS": "*", "TRACON_FLEET_SEED_FILE": f.file(name + ".seed"), "TRACON_FLEET_URLS": "nats://" + f.env["TRACON_FLEET_LISTEN"]})
		f.runners[name] = r
	}
	r.startAs("runner", "serve", "--json")
	return r
}

// operator runs a verb as an operator of the fleet does.
func (f *aFleet) operator(words ...string) string {
	f.t.Helper()
	c := f.command(words...)
	for k, v := range map[string]string{"TRACON_FLEET_URLS": "nats://" + f.env["TRACON_FLEET_LISTEN"], "TRACON_FLEET_SEED_FILE": f.file("operator.seed")} {
		c.Env = append(c.Env, k+"="+v)
	}
	out, err := c.Output()
	if err != nil {
		f.t.Fatalf("%q: %v: %s", words, err, out)
	}
	return string(out)
}

type fleetLine struct {
	Name, State string
	Busy, Slots int
}

// await waits until the list is as so says.
func (f *aFleet) await(what string, so func([]fleetLine) bool) {
	f.t.Helper()
	eventually(f.t, what, func() bool {
		var list []fleetLine
		if err := json.Unmarshal([]byte(f.operator("runner", "list", "--json")), &list); err != nil {
			f.t.Fatal(err)
		}
		return so(list)
	})
}

// idle reports whether n runners are there and none has a run.
func idle(n int) func([]fleetLine) bool {
	return func(list []fleetLine) bool {
		for _, l := range list {
			if l.Busy > 0 {
				return false
			}
		}
		return len(list) == n
	}
}

// proving writes its second argument into a file of that name: a run that is started
// twice leaves two lines.
const proving = "echo started >>\"$1/$2\"; sleep 0.3; echo done\n"

// runs makes n runs at once, and returns how each ended, by the name of its proof. An
// error in the place of an outcome is kept as "lost".
func (f *aFleet) runs(c *client.Client, from, n int, middle func()) map[string]string {
	f.t.Helper()
	var mu sync.Mutex
	ended := map[string]string{}
	var all sync.WaitGroup
	for i := range n {
		name := fmt.Sprint("run", from+i)
		all.Go(func() {
			arguments, err := json.Marshal([]string{f.folder, name})
			if err != nil {
				f.t.Error(err)
			}
			how := "lost"
			run, err := c.StartRun(f.t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: arguments}, client.RunOptions{})
			if err == nil && run.State == client.RunEnded {
				how = run.Code
			}
			mu.Lock()
			defer mu.Unlock()
			ended[name] = how
		})
	}
	if middle != nil {
		eventually(f.t, "two runs have begun", func() bool { return f.started(from, n) >= 2 })
		middle()
	}
	all.Wait()
	return ended
}

// started counts the runs that left a proof.
func (f *aFleet) started(from, n int) (count int) {
	f.t.Helper()
	for i := range n {
		text, err := os.ReadFile(f.file(fmt.Sprint("run", from+i)))
		if err == nil && len(text) > 0 {
			count++
		}
		if strings.Count(string(text), "started") > 1 {
			f.t.Errorf("R21: run %d was started twice", from+i)
		}
	}
	return count
}

// Case 55, R21, B9: a fleet of two runners in processes of their own. A runner that is
// killed in the middle of load costs its own runs, which end as unknown or as not
// started; the control plane that is killed closes its own as unknown. No run is
// started twice, and no place is lost.
func TestFleet(t *testing.T) {
	f := newFleet(t, "r1", "r2")
	f.join("r1")
	f.join("r2")
	f.await("two runners are there", idle(2))
	c := f.setUpBy("runtime:sh", "acme", proving)

	if got := f.runs(c, 0, 4, nil); len(got) != 4 || strings.Join(sorted(got), "") != "" {
		t.Fatalf("with nothing amiss the runs ended as %q", got)
	}
	ended := f.runs(c, 100, 12, func() { f.runners["r1"].kill() })
	counts := map[string]int{}
	for _, how := range ended {
		counts[how]++
	}
	for how := range counts {
		if how != "" && how != "unknown" && how != "executor_unavailable" {
			t.Errorf("a run whose runner was killed ended as %q", how)
		}
	}
	if n := f.started(100, 12); n < counts[""] || n > counts[""]+counts["unknown"] {
		t.Errorf("%d scripts began, %d are done and %d unknown", n, counts[""], counts["unknown"])
	}
	f.join("r1")
	f.await("both are there again and have no run", idle(2))

	// The control plane dies in the middle: the runners stop what nobody waits for.
	f.runs(c, 200, 6, func() { f.kill() })
	f.serve()
	f.await("the runners are back and have no run", idle(2))
	c = f.as("acme")
	if got := f.runs(c, 300, 4, nil); strings.Join(sorted(got), "") != "" {
		t.Errorf("after all that the runs ended as %q", got)
	}
	f.started(200, 6)
	calls, err := f.command("fsck").CombinedOutput()
	if err != nil {
		t.Errorf("fsck: %v: %s", err, calls)
	}

	// Drained, a runner takes no more; the other does.
	f.operator("runner", "drain", "r2")
	f.await("r2 drains", func(list []fleetLine) bool { return len(list) == 2 && list[1].State == "draining" })
	if got := f.runs(c, 400, 2, nil); strings.Join(sorted(got), "") != "" {
		t.Errorf("with one runner drained the runs ended as %q", got)
	}
	for name, r := range f.runners {
		if out, err := r.command("audit", "verify").CombinedOutput(); err != nil {
			t.Errorf("%s: audit verify: %v: %s", name, err, out)
		}
	}
}

// sorted returns how the runs ended, with blanks left out.
func sorted(ended map[string]string) (list []string) {
	for how := range maps.Values(ended) {
		if how != "" {
			list = append(list, how)
		}
	}
	return list
}
