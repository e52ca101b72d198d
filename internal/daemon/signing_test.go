package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/daemon"
)

// B7: what is written while a process goes on is signed by the clock, and what it
// wrote last when it ends; each run's answer has its receipt.
func TestSigning(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo word\n"})
	grantAll(t, h)
	h.Config.CheckpointInterval = 10 * time.Millisecond
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "a.sh"})
	if err != nil || out.Stdout != "word\n" {
		t.Fatalf("got %+v, %v", out, err)
	}
	keys, err := h.Notary.Keys()
	if err != nil {
		t.Fatal(err)
	}
	text, err := out.Proof.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	p, err := audit.OpenProof(text, keys...)
	if err != nil || p.Index != out.Receipt.Index() || audit.LeafHash(p.Leaf) != out.Receipt.Hash() {
		t.Errorf("the receipt is %s, %v", text, err)
	}
	r, err := h.Log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Refusal})
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if v, err := h.VerifyLog(t.Context(), daemon.Against{}, nil); err == nil && v.Signed > r.Index() {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the clock signed nothing")
		}
	}
}

// A log that can no longer be signed runs nothing, in a process that goes on too:
// it takes no call any more, and says why.
func TestUnsignedRunsNothing(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo word\n"})
	grantAll(t, h)
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "a.sh"}
	if _, err := runner.Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(h.Config.Data, "keys", "log.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Notary.Checkpoint(t.Context()); !errors.Is(err, notary.ErrKey) {
		t.Fatalf("a key that others may read signs: %v", err)
	}
	if _, err := runner.Run(t.Context(), call); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, notary.ErrKey) {
		t.Errorf("a call: got %v, want ErrUnavailable because of ErrKey", err)
	}
	if err := h.Ready(t.Context()); !errors.Is(err, notary.ErrKey) {
		t.Errorf("Ready says %v", err)
	}
}
