package daemon_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/instance"
)

// Case 53: a database comes alone, with a key of a process of which there is no sign. Its
// call may stand in what is lost of the log, so the key is not free; that of a process
// which lives here is its own.
func TestKeysOfStrangers(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front})
	lives := id.New()
	other, err := instance.Start(t.Context(), filepath.Join(h.Config.Data, daemon.InstancesFolder), lives, 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background(), false)
	begin := func(key, instance string) idempotency.Found {
		t.Helper()
		f, err := h.Store.Begin(t.Context(), idempotency.Claim{Tenant: "t", Key: key, Body: bundle.Sum(nil), Run: id.New(), At: time.Now(), Instance: idempotency.Instance(instance)})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	begin("stranger", id.New())
	begin("its", lives)
	if _, err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := begin("stranger", h.ID()); f.State != idempotency.Done || f.Answer != nil {
		t.Errorf("the stranger's key stands for %+v", f)
	}
	if f := begin("its", h.ID()); f.State != idempotency.Running {
		t.Errorf("the key of one that lives stands for %+v", f)
	}
}

// I5: a database comes alone, with calls of processes whose files stayed behind. The
// next start closes them as unknown and says why; calls of a process that lives on
// this data folder stay its own; and fsck, which had sent the operator here, is content.
func TestStrangersAreSettled(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo word\n"})
	grantAll(t, h)
	folder := filepath.Join(h.Config.Data, daemon.InstancesFolder)
	lives := id.New()
	other, err := instance.Start(t.Context(), folder, lives, 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	admit := func(of string) string {
		t.Helper()
		call := id.New()
		if _, err := h.Log.Append(t.Context(), audit.Entry{Tenant: "t", Actor: "model", Kind: audit.Admission, Subject: "s a.sh", Run: call,
			Facts: audit.Facts("instance", of, "skill", "s")}); err != nil {
			t.Fatal(err)
		}
		return call
	}
	stranger, its := admit(id.New()), admit(lives)
	if _, found := examined(t, h); len(found) != 1 || found[0].Invariant != "I5" || !strings.Contains(found[0].What, stranger) {
		t.Errorf("fsck finds %+v", found)
	}
	for range 300 { // so that it is worth writing down
		if _, err := h.Log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Refusal}); err != nil {
			t.Fatal(err)
		}
	}
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "a.sh"}); err != nil || out.Stdout != "word\n" {
		t.Fatalf("got %+v, %v", out, err)
	}
	if rec, err := h.Store.Call(t.Context(), "t", stranger); err != nil || rec.Ending != "unknown" || len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "no sign is left") {
		t.Errorf("the record is %+v, %v", rec, err)
	}
	if report, found := examined(t, h); found != nil || report.Running != 1 {
		t.Errorf("fsck then says %+v and finds %+v", report, found)
	}
	settled := filepath.Join(folder, "settled")
	if _, err := os.Stat(settled); err != nil {
		t.Fatal(err)
	}
	// The other process is gone, with its file; the log was looked through beyond its call.
	if err := other.Close(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	next := func() {
		t.Helper()
		again, err := daemon.Open(t.Context(), h.Config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, found := examined(t, h); found != nil {
			t.Errorf("fsck finds %+v", found)
		}
	}
	next()
	if rec, err := h.Store.Call(t.Context(), "t", its); err != nil || rec.Ending != "unknown" {
		t.Errorf("the record is %+v, %v", rec, err)
	}
	// What stands in the file may be of another log, or nonsense: all is looked at again.
	for _, text := range []string{"", "{", `{"size":5,"leaf":"` + strings.Repeat("0", 64) + `","open":[]}`, `{"size":99999,"leaf":"` + strings.Repeat("0", 64) + `","open":[]}`} {
		call := admit(id.New())
		if err := os.WriteFile(settled, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		next()
		if rec, err := h.Store.Call(t.Context(), "t", call); err != nil || rec.Ending != "unknown" {
			t.Errorf("with %q there: the record is %+v, %v", text, rec, err)
		}
	}
}
