package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/internal/broker"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/runnercase"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// aFleet is a `tracon serve`, three NATS servers of one cluster, and runners: each a
// process of its own.
type aFleet struct {
	*served
	folder  string // of keys and proofs
	nodes   []*runnercase.Process
	runners map[string]*served
}

// silence is how long a side may say nothing before it counts as gone, where one is killed.
const silence = "5s"

// newFleet starts the servers, and a control plane that knows the runners; none of them
// is there yet. Whoever says nothing for as long as lost is gone.
func newFleet(t *testing.T, lost string, names ...string) *aFleet {
	t.Helper()
	f := &aFleet{folder: t.TempDir(), runners: map[string]*served{}}
	env := map[string]string{"TRACON_EXECUTOR": "fleet", "TRACON_FLEET_TIER": "process", "TRACON_TRUST_CLAIMED": "true", "TRACON_FLEET_LOST": lost,
		"TRACON_FLEET_TICKET_KEY": f.file("ticket.pem"), "TRACON_FLEET_SEED_FILE": f.file("host.seed"), "TRACON_SLOTS": "12", "TRACON_SLOTS_PER_TENANT": "12"}
	f.served = newServed(t, env)
	ticketKeys(t, f.folder)
	pool := broker.Pool{Name: config.DefaultPool}
	pool.HostHear, pool.HostSay = fleet.HostSubjects(pool.Name)
	for _, name := range names {
		m := broker.Member{Name: name, Key: f.joinKey(name)}
		m.Hear, m.Say = fleet.RunnerSubjects(pool.Name, name)
		pool.Members = append(pool.Members, m)
	}
	pool.Hosts = []broker.Member{{Name: "host", Key: f.joinKey("host")}}
	f.cluster(pool)
	f.start()
	return f
}

// cluster starts three servers that are one.
func (f *aFleet) cluster(pool broker.Pool) {
	f.t.Helper()
	var urls, routes []string
	for _, name := range []string{"a", "b", "c"} {
		text, err := json.Marshal(natsNode{name, pool, routes})
		if err != nil {
			f.t.Fatal(err)
		}
		node := runnercase.Start(f.t, "nats", string(text))
		var at natsAt
		if err := json.Unmarshal([]byte(node.Line), &at); err != nil {
			f.t.Fatal(err)
		}
		f.nodes, urls, routes = append(f.nodes, node), append(urls, "nats://"+at.Address), append(routes, at.Cluster)
	}
	f.env["TRACON_FLEET_URLS"] = strings.Join(urls, ",")
}

func (f *aFleet) file(name string) string { return filepath.Join(f.folder, name) }

// ticketKeys makes the key that signs tickets: ticket.pem, and its public half ticket.pub.
func ticketKeys(t *testing.T, folder string) {
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
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// joinKey makes a key, and returns its public half.
func (f *aFleet) joinKey(name string) string {
	f.t.Helper()
	seed, public, err := fleet.NewSeed()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.file(name+".seed"), seed, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return public
}

// join starts the runner of that name, or starts it again.
func (f *aFleet) join(name string) *served {
	f.t.Helper()
	r := f.runner(name)
	r.startAs("runner", "serve", "--json")
	return r
}

// runner is the runner of that name, which may not be there yet.
func (f *aFleet) runner(name string) *served {
	f.t.Helper()
	r := f.runners[name]
	if r == nil {
		r = newServed(f.t, map[string]string{"TRACON_ENABLED": "true", "TRACON_RUNTIMES": "sh=/bin/sh", "TRACON_RUNNER_LISTEN": "127.0.0.1:0", "TRACON_RUNNER_NAME": name,
			"TRACON_RUNNER_TICKETS": "true", "TRACON_RUNNER_TICKET_KEYS": "fleet=" + f.file("ticket.pub"), "TRACON_SLOTS": "4", "TRACON_SLOTS_PER_TENANT": "4",
			"TRACON_FLEET_JOIN": "main", "TRACON_FLEET_TENANTS": "*", "TRACON_FLEET_SEED_FILE": f.file(name + ".seed"), "TRACON_FLEET_URLS": f.env["TRACON_FLEET_URLS"], "TRACON_FLEET_LOST": f.env["TRACON_FLEET_LOST"]})
		f.runners[name] = r
	}
	return r
}

// operator runs a verb as an operator of the fleet does.
func (f *aFleet) operator(words ...string) string {
	f.t.Helper()
	out, err := f.command(words...).Output()
	if err != nil {
		f.t.Fatalf("%q: %v: %s", words, err, out)
	}
	return string(out)
}

type fleetLine struct {
	Name, State string
	Busy, Slots int
	Runtimes    []string
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
			var how string
			run, err := c.StartRun(f.t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: arguments}, client.RunOptions{})
			switch {
			case errors.Is(err, client.ExecutorUnavailable): // a run that was not started has no outcome
				how = string(client.ExecutorUnavailable)
			case err != nil:
				how = "lost: " + err.Error()
			case run.State == client.RunEnded:
				how = run.Code
			default:
				how = "lost: " + string(run.State)
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

// admitted counts what the runners' logs say that they began. Each log holds.
func (f *aFleet) admitted() (count int) {
	f.t.Helper()
	for name, r := range f.runners {
		// One that was killed before a run of its ended has signed nothing yet.
		if out, err := r.command("audit", "checkpoint").CombinedOutput(); err != nil {
			f.t.Errorf("%s: audit checkpoint: %v: %s", name, err, out)
		}
		if out, err := r.command("audit", "verify").CombinedOutput(); err != nil {
			f.t.Errorf("%s: audit verify: %v: %s", name, err, out)
		}
		out, err := r.command("audit", "list", "--all-tenants", "--kind", "admission", "--json").Output()
		if err != nil {
			f.t.Fatal(err)
		}
		var list []json.RawMessage
		if err := json.Unmarshal(out, &list); err != nil {
			f.t.Fatal(err)
		}
		count += len(list)
	}
	return count
}

// holds checks that the runs ended as they may where something dies in the middle.
func (f *aFleet) holds(ended map[string]string, from, n int) {
	f.t.Helper()
	counts := map[string]int{}
	for _, how := range ended {
		counts[how]++
		if how != "" && how != "unknown" && how != string(client.ExecutorUnavailable) {
			f.t.Errorf("R26: a run ended as %q", how)
		}
	}
	if began := f.started(from, n); began < counts[""] || began > counts[""]+counts["unknown"] {
		f.t.Errorf("R21: %d scripts began, %d are done and %d unknown", began, counts[""], counts["unknown"])
	}
}

// Case 55, R21, B9: three NATS servers, three runners and a control plane, each a
// process. A runner that is killed in the middle of load costs its own runs, which end
// as unknown or as not started; so does a NATS server what was just handed over; the
// control plane that is killed closes its own as unknown. No run is started twice, no
// place is lost, and the runners' logs have all that began.
func TestFleet(t *testing.T) {
	t.Parallel() // it waits for most of its time
	rounds, load := 1, 9
	if os.Getenv("TRACON_FAULTS") == "full" {
		rounds, load = 10, 60
	}
	f := newFleet(t, silence, "r1", "r2", "r3")
	for _, name := range []string{"r1", "r2", "r3"} {
		f.join(name)
	}
	f.await("three runners are there", idle(3))
	c := f.setUpBy("runtime:sh", "acme", proving)
	began, from := 0, 0
	calm := func(n int) {
		t.Helper()
		if got := f.runs(c, from, n, nil); len(got) != n || len(sorted(got)) != 0 {
			t.Errorf("with nothing amiss %d runs ended as %q", len(got), sorted(got))
		}
		began += f.started(from, n)
		from += n
	}
	amiss := func(kill func()) {
		t.Helper()
		f.holds(f.runs(c, from, load, kill), from, load)
		began += f.started(from, load)
		from += load
	}
	calm(3)
	for round := range rounds {
		amiss(func() {
			f.runners["r1"].kill()
			if round == 0 {
				f.nodes[0].Kill()
			}
		})
		f.join("r1")

		// The control plane dies in the middle: the runners stop what nobody waits for.
		f.runs(c, from, load, f.kill)
		began += f.started(from, load)
		from += load
		f.start()
		f.await("all are there and have no run", idle(3))
		c = f.as("acme")
		calm(3)
	}
	if out, err := f.command("fsck").CombinedOutput(); err != nil {
		t.Errorf("fsck: %v: %s", err, out)
	}
	// A runner writes its log first: one that was killed may have written of a run whose
	// script left no proof, and never the other way round.
	if got := f.admitted(); got < began || got > from {
		t.Errorf("R21: the runners' logs have %d runs; %d scripts began, of %d runs", got, began, from)
	}

	// Drained, a runner takes no more; the others do.
	f.operator("runner", "drain", "r2")
	f.await("r2 drains", func(list []fleetLine) bool { return len(list) == 3 && list[1].State == "draining" })
	calm(2)
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
