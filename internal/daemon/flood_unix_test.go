//go:build unix

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// floodVariable holds the home of the child of TestFloodSurvivesAKill.
const floodVariable = "TRACON_TEST_FLOOD"

// floodSize is how often the child's call is refused.
const floodSize = 50

func floodHouse(t *testing.T, home string) *daemon.House {
	t.Helper()
	env := map[string]string{"HOME": home, "TRACON_EXECUTOR": "process", "TRACON_RUNTIME": home + "/run"}
	c, err := config.Load(config.Source{Getenv: func(k string) string { return env[k] }, Dir: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := daemon.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Case 61, "never dropped": a process is killed in the middle of a flood, and the
// next one finds every refusal of it, once.
func TestFloodSurvivesAKill(t *testing.T) {
	if home := os.Getenv(floodVariable); home != "" {
		flood(t, home)
	}
	home := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^TestFloodSurvivesAKill$")
	c.Env = append(os.Environ(), floodVariable+"="+home)
	out, err := c.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
	for range 2 { // the second start finds nothing more
		h := floodHouse(t, home)
		if _, err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var counts []uint64
		total := uint64(0)
		for leaf, err := range h.Log.Entries(t.Context(), "t", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if leaf.Entry.Kind == audit.Refusal {
				counts, total = append(counts, leaf.Entry.Count), total+leaf.Entry.Count
			}
		}
		if total != floodSize || len(counts) != 2 {
			t.Errorf("the log counts %d refusals, want 1 and %d", counts, floodSize-1)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// flood is the child: it is refused, again and again, and dies.
func flood(t *testing.T, home string) {
	h := floodHouse(t, home)
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range floodSize {
		_, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Actor: "model", Skill: "none", Script: "none.sh", Arguments: fmt.Append(nil, i)})
		if !errors.Is(err, gate.ErrDenied) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {} // until it comes
}
