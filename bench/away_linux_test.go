package bench

import (
	"bufio"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/broker"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// runnerPlaces is how many runs a runner of these benchmarks has at once.
const runnerPlaces = 4

// away is a host that sends scripts to runners, each a `tracon runner serve` with its
// sandbox, its log on disk and its tickets.
type away struct {
	b       *testing.B
	folder  string
	signer  *ticket.Signer
	server  *broker.Server
	fleet   *fleet.Executor
	address []string // of the runners, by http
	keys    []string // by which the host asks there
}

// newAway builds the program, and starts n runners that join one fleet.
func newAway(b *testing.B, n int) *away {
	b.Helper()
	a := &away{b: b, folder: b.TempDir()}
	a.command("go", nil, "build", "-o", a.file("tracon"), "../cmd/tracon")
	a.tickets()
	pool := broker.Pool{Name: "main"}
	pool.HostHear, pool.HostSay = fleet.HostSubjects(pool.Name)
	for i := range n {
		seed, public, err := fleet.NewSeed()
		if err == nil {
			err = os.WriteFile(a.file(runnerName(i)+".seed"), seed, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		m := broker.Member{Name: runnerName(i), Key: public}
		m.Hear, m.Say = fleet.RunnerSubjects(pool.Name, m.Name)
		pool.Members = append(pool.Members, m)
	}
	var err error
	if a.server, err = broker.Start(broker.Config{Name: "host", Listen: "127.0.0.1:0", Pools: []broker.Pool{pool}}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(a.server.Close)
	a.fleet, err = fleet.New(fleet.Config{Tier: grant.Sandbox, Sign: a.sign, Logger: slog.New(slog.DiscardHandler),
		Pools: []fleet.Pool{{Name: pool.Name, Others: true, Link: fleet.Link{Within: a.server, Seed: a.server.Host(pool.Name)}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.fleet.Close() })
	for i := range n {
		a.start(i)
	}
	return a
}

func runnerName(i int) string { return fmt.Sprint("runner-", i+1) }

func (a *away) file(name string) string { return filepath.Join(a.folder, name) }

// tickets makes the key that signs them, whose public half the runners know.
func (a *away) tickets() {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		a.b.Fatal(err)
	}
	if a.signer, err = ticket.NewSigner(key); err != nil {
		a.b.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err == nil {
		err = os.WriteFile(a.file("ticket.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		a.b.Fatal(err)
	}
}

func (a *away) sign(run wire.Run, runner string) (string, error) {
	request, err := run.Commitment()
	if err != nil {
		return "", err
	}
	digest, err := run.More.Digest()
	if err != nil {
		return "", err
	}
	return a.signer.Sign(ticket.Terms{Runner: runner, Tenant: run.Tenant, Run: run.More.ID, Digest: digest, Request: request})
}

// command runs a program to its end, and returns what it printed.
func (a *away) command(program string, env []string, words ...string) string {
	a.b.Helper()
	c := exec.Command(program, words...)
	c.Env = append(os.Environ(), env...)
	out, err := c.Output()
	if err != nil {
		a.b.Fatalf("%s %q: %v", program, words, err)
	}
	return strings.TrimSpace(string(out))
}

// start starts a runner, and returns when it listens.
func (a *away) start(i int) {
	b, name := a.b, runnerName(i)
	env := []string{"TRACON_DATA=" + a.file(name), "TRACON_STATE=" + a.file(name+".state"), "TRACON_RUNTIME=" + a.file(name+".run"),
		"TRACON_ENABLED=true", "TRACON_RUNTIMES=sh=/bin/sh", "TRACON_RUNNER_LISTEN=127.0.0.1:0", "TRACON_RUNNER_NAME=" + name,
		"TRACON_RUNNER_TICKETS=true", "TRACON_RUNNER_TICKET_KEYS=fleet=" + a.file("ticket.pub") + ",host=" + a.file("ticket.pub"),
		fmt.Sprint("TRACON_SLOTS=", runnerPlaces), fmt.Sprint("TRACON_SLOTS_PER_TENANT=", runnerPlaces),
		"TRACON_RATE_KEY=100000", "TRACON_RATE_TENANT=100000", "TRACON_RATE_RUNS=100000",
		"TRACON_FLEET_JOIN=main", "TRACON_FLEET_TENANTS=*", "TRACON_FLEET_SEED_FILE=" + a.file(name+".seed"), "TRACON_FLEET_URLS=nats://" + a.server.Address()}
	a.keys = append(a.keys, a.command(a.file("tracon"), env, "runner", "key", "create", "host", "--tenants", "*"))
	c := exec.Command(a.file("tracon"), "runner", "serve", "--json")
	c.Env = append(os.Environ(), env...)
	log, err := os.Create(a.file(name + ".log"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	c.Stderr = log
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	var at struct{ Address string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&at); err != nil {
		text, _ := os.ReadFile(log.Name())
		b.Fatalf("%s does not start: %v\n%s", name, err, text)
	}
	a.address = append(a.address, at.Address)
}

// remote is the executor that asks the first runner by http.
func (a *away) remote() executor.Executor {
	a.b.Helper()
	e, err := remote.New(remote.Config{Address: a.address[0], Reach: []string{"loopback"}, Key: func() (string, error) { return a.keys[0], nil },
		Signer: a.signer, Runner: runnerName(0)})
	if err != nil {
		a.b.Fatal(err)
	}
	a.b.Cleanup(func() { _ = e.Close() })
	return e
}

// A side is one way of running a script, and how long each run took.
type side struct {
	name     string
	executor executor.Executor
	world    *executortest.World
	took     []time.Duration
}

func orderOf(script string) executortest.Order {
	return executortest.Order{Tenant: "acme", Script: "main.sh", Mode: gate.None,
		Files: []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main.sh", Data: []byte(script)}}}
}

// run admits a run, has it made, and returns how long the executor took.
func (s *side) run(b *testing.B, o executortest.Order) (time.Duration, error) {
	req, err := s.world.Admit(b.Context(), o)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	res, err := s.executor.Execute(b.Context(), req)
	took := time.Since(begun)
	if err == nil && res.Ending != executor.Exited(0) {
		err = fmt.Errorf("it ended as %v: %s", res.Ending, res.Stderr)
	}
	return took, err
}

// ready waits until the side runs scripts: a runner takes no tickets in the first
// seconds after its start.
func (s *side) ready(b *testing.B) {
	b.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err = s.run(b, orderOf("true\n")); err == nil {
			return
		}
	}
	b.Fatalf("%s: %v", s.name, err)
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2]) / float64(time.Millisecond)
}

// BenchmarkAway compares the same script in a sandbox of this process, in one of a
// runner that is asked by http, and in one of a runner of a fleet. They take turns. The
// runners write their logs to disk, twice for each run. "over-ms" is how much later the
// median comes.
func BenchmarkAway(b *testing.B) {
	found, err := interpreter.Find(b.Context(), "sh")
	if err != nil {
		b.Fatal(err)
	}
	e, err := sandbox.New(sandbox.Config{Runtime: filepath.Join(b.TempDir(), "run"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	a := newAway(b, 1)
	named := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Name: "sh"}})
	sides := []*side{
		{name: "local", executor: e, world: executortest.NewWorld(map[string]gate.Interpreter{"sh": found.Interpreter()})},
		{name: "remote", executor: a.remote(), world: named}, {name: "fleet", executor: a.fleet, world: named}}
	for _, s := range sides {
		s.ready(b)
	}
	o := orderOf("true\n")
	for n := 0; b.Loop(); n++ {
		for i := range sides {
			s := sides[(i+n)%len(sides)]
			took, err := s.run(b, o)
			if err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
			s.took = append(s.took, took)
			time.Sleep(rest)
		}
	}
	local := median(sides[0].took)
	b.ReportMetric(local, "local-ms")
	b.ReportMetric(0, "ns/op") // it has the rests in it
	for _, s := range sides[1:] {
		m := median(s.took)
		b.ReportMetric(m, s.name+"-ms")
		b.ReportMetric(m-local, s.name+"-over-ms")
		b.ReportMetric(m/local, s.name+"-x-local")
	}
}

// BenchmarkFleet has scripts that wait for 50 ms run by 1, 2 and 4 runners of 4 places,
// by as many callers as there are places.
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &side{name: "fleet", executor: newAway(b, n).fleet, world: executortest.NewWorld(map[string]gate.Interpreter{"sh": {Name: "sh"}})}
			var all sync.WaitGroup
			for range 2 * n * runnerPlaces { // and every runner has had some
				all.Go(func() { s.ready(b) })
			}
			all.Wait()
			o := orderOf("sleep 0.05\n")
			left := make(chan struct{}, b.N)
			for range b.N {
				left <- struct{}{}
			}
			close(left)
			b.ResetTimer()
			for range n * runnerPlaces {
				all.Go(func() {
					for range left {
						if _, err := s.run(b, o); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()*0.05/float64(n*runnerPlaces), "of-at-best")
		})
	}
}
