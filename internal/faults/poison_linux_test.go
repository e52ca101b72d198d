package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/store"
)

// poisonVariable makes a host of the test binary that works until its log fails,
// and then shows that nothing runs any more.
const poisonVariable = "TRACON_FAULTS_POISON"

// poisonOwnVariable says that it is not the database that fails, but a file beside it.
const poisonOwnVariable = "TRACON_FAULTS_POISON_OWN"

func poisoned() error {
	ctx := context.Background()
	c, err := config.Load(config.Source{Getenv: os.Getenv, Dir: os.Getenv("HOME")})
	if err != nil {
		return err
	}
	h, err := daemon.Open(ctx, c, slog.New(slog.DiscardHandler))
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
	proof := os.Getenv(poisonVariable)
	args, err := json.Marshal([]string{proof})
	if err != nil {
		return err
	}
	call := gate.Call{Tenant: "local", Actor: "caller", Skill: "x", Script: "a.sh", Arguments: args}
	want := store.ErrPoisoned
	if os.Getenv(poisonOwnVariable) != "" {
		want = notary.ErrPoisoned // by the receipt of a call that ran
	}
	runs := 0
	for ; err == nil; runs++ {
		if err := h.Ready(ctx); err != nil && (want == store.ErrPoisoned || !errors.Is(err, want)) {
			return fmt.Errorf("before the failure Ready says: %w", err)
		}
		_, err = runner.Run(ctx, call)
	}
	first := err
	if !errors.Is(first, want) || !errors.Is(first, audit.ErrUnavailable) {
		return fmt.Errorf("call %d says: %w", runs, first)
	}
	proofs := func() string { text, _ := os.ReadFile(proof); return string(text) }
	ran := proofs()
	for range 5 {
		out, err := runner.Run(ctx, call)
		if !errors.Is(err, audit.ErrUnavailable) || tracon.Code(out, err) != "audit_unavailable" {
			return fmt.Errorf("a call after the failure says: %w", err)
		}
	}
	if now := proofs(); now != ran {
		return fmt.Errorf("a script ran after the failure")
	}
	ready := map[string]error{"House": h.Ready(ctx), "Runner": runner.Ready(ctx), "Log": h.Log.Ready(ctx)}
	var change error
	if want == store.ErrPoisoned {
		ready["Store"] = h.Store.Ready(ctx)
		_, change = h.Admin.SetPolicy(ctx, "op", "local", func(p *gate.Policy) error { p.MaxOutput++; return nil })
	} else {
		_, change = h.Notary.Checkpoint(ctx)
	}
	if !errors.Is(change, want) {
		return fmt.Errorf("a change after the failure says: %w", change)
	}
	for name, err := range ready {
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "start again") {
			return fmt.Errorf("after the failure the Ready of the %s says: %w", name, err)
		}
	}
	fmt.Println("stopped after", runs)
	return nil
}

// TestPoison: case 57, I9. When a flush of the database, of a checkpoint or of the
// high-water mark fails once, in a host that goes on, nothing runs and nothing is written any more, though every later flush
// would succeed; Ready says so, with the remedy. The next process goes on.
func TestPoison(t *testing.T) {
	strace := need(t, "strace")
	for _, tt := range []struct {
		name, call, inject string
		when               int
		own                func(s site) string // a pattern of the file; nil: the database's
	}{
		{"a flush fails", "fsync", "error=EIO", 30, nil},
		{"the disk is full at a write", "pwrite64", "error=ENOSPC", 30, nil},
		{"a write fails", "pwrite64", "error=EIO", 30, nil},
		{"a flush of the checkpoints fails", "fsync", "error=EIO", 3, func(s site) string { return notary.File(s.data()) }},
		{"a flush in the second folder fails", "fsync", "error=EIO", 3, func(s site) string { return filepath.Join(s.dir, "second", "*.checkpoints") }},
		{"a flush of the mark fails", "fsync", "error=EIO", 3, func(s site) string { return filepath.Join(s.dir, "home", ".local", "state", "tracon", "mark-*.json") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			env := s.env()
			if tt.own != nil {
				s.second = filepath.Join(s.dir, "second")
				if err := os.Mkdir(s.second, 0o700); err != nil {
					t.Fatal(err)
				}
				env = s.env()
				env[poisonOwnVariable] = "1"
			}
			s.must(t, "run", "--grant", "x", "a.sh", "--args", `["`+s.proof()+`"]`)
			h, err := s.open(t)
			if err != nil {
				t.Fatal(err)
			}
			_, before, err := leaves(h)
			if err := errors.Join(err, h.Close(context.Background())); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(s.data(), daemon.DatabaseFile+"-wal")
			if tt.own != nil {
				found, err := filepath.Glob(tt.own(s))
				if err != nil || len(found) != 1 {
					t.Fatalf("there are %q, %v", found, err)
				}
				if file = found[0]; strings.HasSuffix(file, ".json") {
					file += ".tmp" // which then gets its name
				}
			}
			trace := filepath.Join(s.dir, "trace")
			c := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync,pwrite64,ftruncate",
				"-e", fmt.Sprintf("inject=%s:%s:when=%d", tt.call, tt.inject, tt.when), "-P", file, "/proc/self/exe")
			if exe, err := os.Executable(); err != nil {
				t.Fatal(err)
			} else {
				c.Args[len(c.Args)-1] = exe
			}
			for name, value := range env {
				c.Env = append(c.Env, name+"="+value)
			}
			c.Env = append(c.Env, poisonVariable+"="+s.proof(), "TRACON_SKILLS="+filepath.Join(s.dir, "skills"))
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "stopped after") {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			_, after, fired := strings.Cut(string(text), "(INJECTED)")
			if !fired {
				t.Fatal("the fault did not come")
			}
			for _, call := range []string{"fsync(", "fdatasync(", "pwrite64("} {
				if strings.Contains(after, call) {
					t.Errorf("after the failure the log is written or flushed again:\n%s", after)
				}
			}
			h, found, err := s.recovered(t)
			if err != nil || found != nil {
				t.Fatalf("the next process: %v, fsck finds %s", err, asJSON(found))
			}
			_, now, err := leaves(h)
			if ran := s.proofs(t) - 1; err != nil || ran > now-before {
				t.Errorf("I4: the script ran %d times, and %d calls were admitted, error %v", ran, now-before, err)
			}
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
