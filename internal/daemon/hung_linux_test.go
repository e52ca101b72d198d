package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/pgserver"
)

// TestHungDatabase: R16, R24. A call whose database answers nothing ends when its
// caller leaves, as cancelled: nothing ran, and nothing runs when the database goes on.
func TestHungDatabase(t *testing.T) {
	f := newFleet(t)
	h := f.house()
	runner, err := started(h)
	if err != nil {
		t.Fatal(err)
	}
	settings(t, h)
	grantAll(t, h)
	call := gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "count.sh"}
	run := func() {
		t.Helper()
		if out, err := runner.Run(t.Context(), call); err != nil || out.Stderr != "" {
			t.Fatalf("a run: %v %s", err, out.Stderr)
		}
	}
	run()
	server := pgserver.Shared(t)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("the caller left"))
	out, err := runner.Run(ctx, call)
	cancel()
	if code := tracon.Code(out, err); code != "cancelled" || !errors.Is(err, tracon.ErrCancelled) {
		t.Errorf("the call ends as %q, %v; want cancelled", code, err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	run()
	if ran, err := os.ReadFile(filepath.Join(f.shared, "ran")); err != nil || strings.Count(string(ran), "x") != 2 {
		t.Errorf("%d scripts ran, want 2 (%v)", strings.Count(string(ran), "x"), err)
	}
	if got := f.endings(h); got["exited"] != 2 || len(got) != 1 {
		t.Errorf("the calls ended %v, want two that exited", got)
	}
}
