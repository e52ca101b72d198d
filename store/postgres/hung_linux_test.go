package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store/postgres"
)

// TestHungServer: R16, R24. A server that keeps its connections and answers nothing
// keeps no call longer than its caller waits: each gets the caller's word, nothing
// of it is done, and nothing of it is done later, when the server goes on.
func TestHungServer(t *testing.T) {
	server := pgserver.Shared(t)
	address := pgserver.New(t)
	h := join(t, address, "host", long, slot.Limits{})
	log := audit.NewLog(h.st)
	appendTo(t, log, "before")
	take(t, h, "a").Release()
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if err := server.Resume(); err != nil && !resumed {
			t.Error(err)
		}
		resumed = true
	}
	defer resume()
	for name, call := range map[string]func(context.Context) error{
		"an append": func(ctx context.Context) error {
			_, err := log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: "given up"})
			return err
		},
		"a read": func(ctx context.Context) error {
			_, err := h.st.Grant(ctx, grant.Ref{Tenant: "acme", Skill: "s", AllScripts: true})
			return err
		},
		"a look whether it is ready": h.st.Ready,
		"a call for a slot": func(ctx context.Context) error {
			_, err := h.Enter(ctx, "a")
			return err
		},
		"opening": func(ctx context.Context) error {
			st, err := postgres.Open(ctx, address, postgres.Options{})
			if err == nil {
				err = errors.Join(errors.New("it was opened"), st.Close())
			}
			return err
		},
	} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errGaveUp)
		if err := call(ctx); !errors.Is(err, errGaveUp) {
			t.Errorf("%s says %v, want the caller's cause", name, err)
		}
		cancel()
	}
	resume()
	appendTo(t, log, "after")
	for leaf, err := range log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Subject == "given up" {
			t.Error("what its caller gave up stands in the log")
		}
	}
	if n := verified(t, log); n != 2 {
		t.Errorf("the log has %d entries, want 2", n)
	}
	take(t, h, "a").Release()
	settled(t, address, 0)
}
