package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/pgserver"
)

// hostVariable makes a host of the test binary: it works until it is killed. Its
// value is the folder in which the scripts leave their proofs.
const hostVariable = "TRACON_FAULTS_HOST"

const callers = 64

// host runs calls of many callers at once, and says on its standard output what
// it was told: "ready" first, "key ID" when a client's key, the call's id, stands for
// the call, "run ID INDEX HASH" for each call that was answered and is kept by its key,
// "policy N" for each change that was.
func host(proofs string) error {
	ctx := context.Background()
	c, err := config.Load(config.Source{Getenv: os.Getenv, Dir: proofs})
	if err != nil {
		return err
	}
	h, err := daemon.Open(ctx, c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	if err := h.AddRoots(); err != nil {
		return err
	}
	runner, err := h.Start(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	say("ready")
	failed := make(chan error)
	for n := range callers {
		go func() {
			for i := 0; ; i++ {
				run := id.New()
				if _, err := h.Store.Begin(ctx, claimOf(run, run, h.ID())); err != nil {
					failed <- err
					return
				}
				say("key %s", run)
				// Some are in the middle of their work when the host is killed.
				stays := "0"
				if (n+i)%16 == 0 {
					stays = "1000"
				}
				words := []string{filepath.Join(proofs, run), stays}
				args, err := json.Marshal(words)
				if err != nil {
					failed <- err
					return
				}
				out, err := runner.Run(ctx, gate.Call{ID: run, Tenant: "local", Actor: "caller", Skill: "k", Script: "k.sh", Arguments: args})
				if err == nil {
					err = h.Store.Finish(ctx, "local", run, run, []byte("answer"))
				}
				if err != nil {
					failed <- err
					return
				}
				say("run %s %d %s", run, out.Receipt.Index(), out.Receipt.Hash())
			}
		}()
	}
	go func() {
		for {
			p, err := h.Admin.SetPolicy(ctx, "op", "local", func(p *gate.Policy) error { p.MaxOutput++; return nil })
			if err != nil {
				failed <- err
				return
			}
			say("policy %d", p.MaxOutput)
		}
	}()
	return <-failed
}

// claimOf says that key stands for the call run, which the host instance makes.
func claimOf(key, run, instance string) idempotency.Claim {
	return idempotency.Claim{Tenant: "local", Key: key, Body: bundle.Sum([]byte("body")), Run: run, At: time.Now(), Instance: idempotency.Instance(instance)}
}

// An ack is what a caller of a host was told.
type ack struct {
	index uint64
	hash  string
}

func TestKillLoop(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killLoop(t, newSite(t)) })
	t.Run("postgres", func(t *testing.T) {
		s := newSite(t)
		s.database = pgserver.New(t)
		killLoop(t, s)
	})
}

// killLoop: I1 to I8, case 53. A host under many callers is killed at any moment, again
// and again on the same data: each answer that a caller got is true afterwards, no
// script ran that was not admitted, none twice, each call has one ending, the key
// of each is free or done, and no process is left.
func killLoop(t *testing.T, s site) {
	loops := 25
	switch {
	case full():
		loops = 1000
	case testing.Short():
		loops = 5
	}
	s.layKept(t)
	k := &killing{T: t, site: s, proofs: filepath.Join(s.dir, "proofs"), acks: map[string]ack{}, started: map[string]bool{}, policy: 1024,
		random: rand.New(rand.NewPCG(1, 2))}
	if err := os.Mkdir(k.proofs, 0o700); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := range loops {
		// From the first word of the host on, or from its first answer on.
		if k.kill([]string{"ready", "run"}[n%2]); t.Failed() {
			return
		}
		// What fsck reads grows with every loop, so in long loops it is not asked each time.
		if k.look(n < 50 || n%20 == 0 || n == loops-1); t.Failed() {
			t.Errorf("after kill %d", n+1)
			return
		}
	}
	t.Logf("%d kills: %d entries, %d calls admitted, %d of them answered, %d scripts started, %d calls closed as unknown, of %d keys %d freed, violations: 0, in %s",
		loops, len(k.log), k.admitted, len(k.acks), len(k.started), k.unknown, k.keyed, k.freed, time.Since(began).Round(time.Second))
	if k.unknown == 0 || len(k.acks) == 0 {
		t.Errorf("%d calls were answered and %d were in the middle: the loop shows nothing", len(k.acks), k.unknown)
	}
}

// layKept makes the skill that hosts run, and grants it.
func (s site) layKept(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(s.dir, "skills", "k", "SKILL.md"), "---\nname: k\ndescription: Leaves a proof, and stays.\n---\n")
	write(t, filepath.Join(s.dir, "skills", "k", "k.sh"), "echo ran >>\"$1\"\nexec sleep \"$2\"\n")
	s.must(t, "policy", "set", "--host", "--enabled", "--interpreters", "sh")
	s.must(t, "policy", "set", "--enabled", "--interpreters", "sh", "--max-output", "1KiB")
	s.must(t, "run", "--grant", "k", "k.sh", "--args", `["`+s.proof()+`", "0"]`)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

type killing struct {
	*testing.T
	site   site
	proofs string
	random *rand.Rand
	acks   map[string]ack // by the call's id
	policy int            // the last that was acknowledged
	log    []audit.Hash

	started map[string]bool // the calls whose script left a proof

	admitted, unknown int

	keys         []string // that the last host began, and told
	keyed, freed int
}

// kill starts a host and kills it some time after it has first said the word from.
func (k *killing) kill(from string) {
	c := exec.CommandContext(k.Context(), "/proc/self/exe")
	for name, value := range k.site.env() {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Env = append(c.Env, hostVariable+"="+k.proofs, "TRACON_SKILLS="+filepath.Join(k.site.dir, "skills"), "TRACON_SLOTS=8", "TRACON_SLOTS_PER_TENANT=8")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := c.Start(); err != nil {
		k.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var dies *time.Timer
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if dies == nil && len(words) > 0 && words[0] == from {
			dies = time.AfterFunc(time.Duration(1+k.random.IntN(200))*time.Millisecond, func() { _ = c.Process.Kill() })
		}
		switch {
		case len(words) == 4 && words[0] == "run":
			index, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				k.Fatal(err)
			}
			k.acks[words[1]] = ack{index, words[3]}
		case len(words) == 2 && words[0] == "key" && id.Valid(words[1]):
			k.keys = append(k.keys, words[1])
		case len(words) == 2 && words[0] == "policy":
			if k.policy, err = strconv.Atoi(words[1]); err != nil {
				k.Fatal(err)
			}
		default:
			// The last line may be cut: nobody was told what it says.
		}
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != -1 {
		k.Errorf("the host ended by itself: %v\n%s", err, &stderr)
	}
}

// look is the next process, which compares.
func (k *killing) look(whole bool) {
	h, err := k.site.started(k.T)
	if h != nil {
		defer func() {
			if err := h.Close(context.Background()); err != nil {
				k.Errorf("closing: %v", err)
			}
		}()
	}
	if err != nil {
		k.Error(err)
		return
	}
	if whole {
		if found, err := examined(h); err != nil || len(found) > 0 {
			k.Errorf("error %v; fsck finds %s", err, asJSON(found))
			return
		}
	}
	was := k.log
	k.log, k.admitted, k.unknown = nil, 0, 0
	runs := map[string]int{}
	for leaf, err := range h.Log.Entries(context.Background(), "", 0) {
		if err != nil {
			k.Errorf("the log: %v", err)
			return
		}
		k.log = append(k.log, leaf.Hash)
		switch e := leaf.Entry; e.Kind {
		case audit.Admission:
			k.admitted++
			runs[e.Run]++
			if a, ok := k.acks[e.Run]; ok && (a.index != leaf.Index || a.hash != leaf.Hash.String()) {
				k.Errorf("I1: call %s was acknowledged as entry %d, %s, and is entry %d, %s", e.Run, a.index, a.hash, leaf.Index, leaf.Hash)
			}
		case audit.Ending:
			if e.Fact("ending") == "unknown" {
				k.unknown++
			}
		}
	}
	if len(k.log) < len(was) || !slices.Equal(k.log[:len(was)], was) {
		k.Error("I2: the log does not begin with what it was before")
	}
	for run := range k.acks {
		if runs[run] != 1 {
			k.Errorf("I1: call %s was answered, and was admitted %d times", run, runs[run])
		}
	}
	if p, err := h.Admin.Policy(context.Background(), "local"); err != nil || p.MaxOutput < k.policy {
		k.Errorf("I1: a policy with the output %d was acknowledged, and %d is kept, error %v", k.policy, p.MaxOutput, err)
	}
	k.settled(h, runs)
	k.orphans() // who could still leave a proof
	k.proved(runs)
}

// settled compares what the keys of the dead host stand for with the admissions: a
// call that was admitted has the key for good, and one that was not left it free.
func (k *killing) settled(h *daemon.House, runs map[string]int) {
	for _, key := range k.keys {
		next := id.New()
		f, err := h.Store.Begin(context.Background(), claimOf(key, next, h.ID()))
		_, answered := k.acks[key]
		switch {
		case err != nil:
			k.Error(err)
		case runs[key] == 0 && f.State == idempotency.Begun && f.Run == next:
			k.freed++
			if err := h.Store.Drop(context.Background(), "local", key, next); err != nil {
				k.Error(err)
			}
		case runs[key] == 0 || f.State != idempotency.Done || f.Run != key || answered && string(f.Answer) != "answer":
			k.Errorf("I7: call %s was admitted %d times, and its key stands for %+v", key, runs[key], f)
		}
	}
	k.keyed += len(k.keys)
	k.keys = nil
}

// proved compares what the scripts left with the admissions.
func (k *killing) proved(runs map[string]int) {
	proofs, err := os.ReadDir(k.proofs)
	if err != nil {
		k.Fatal(err)
	}
	for _, p := range proofs {
		if k.started[p.Name()] {
			k.Errorf("I1: the script of call %s ran again after the host was killed", p.Name())
		}
		k.started[p.Name()] = true
		if runs[p.Name()] != 1 {
			k.Errorf("I4: the script of call %s ran, and it was admitted %d times", p.Name(), runs[p.Name()])
		}
		if text, err := os.ReadFile(filepath.Join(k.proofs, p.Name())); err != nil || !strings.HasPrefix("ran\n", string(text)) { // it may have been stopped before it wrote
			k.Errorf("R21: the proof of call %s is %q, error %v", p.Name(), text, err)
		}
		if err := os.Remove(filepath.Join(k.proofs, p.Name())); err != nil {
			k.Fatal(err)
		}
	}
}

// orphans waits until no process is left that has a word of ours: the next host
// ends those of a dead one before it starts anything (I8).
func (k *killing) orphans() {
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left = nil
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			k.Fatal(err)
		}
		for _, p := range all {
			dir := filepath.Dir(p)
			if cwd, err := os.Readlink(filepath.Join(dir, "cwd")); err == nil && strings.HasPrefix(cwd, filepath.Join(k.site.dir, "run")) {
				words, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
				left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(string(words), "\x00", " "))
			}
		}
		if left == nil {
			return
		}
	}
	k.Errorf("I8: processes of dead hosts are left: %v", left)
}
