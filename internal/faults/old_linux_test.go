package faults_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/daemon"
)

// found ends the test unless the real binary finds what is amiss in s: fsck says
// so, and nothing runs.
func (s site) found(t *testing.T) {
	t.Helper()
	out, err := s.command(t.Context(), nil, "fsck").CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 3 || !strings.Contains(string(out), "I3") {
		t.Errorf("fsck ends with %v: %s", err, out)
	}
	ran := s.proofs(t)
	out, err = s.command(t.Context(), nil, "run", "x", "a.sh", "--args", `["`+s.proof()+`"]`).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 125 {
		t.Errorf("a run ends with %v, want 125: %s", err, out)
	}
	if s.proofs(t) != ran {
		t.Error("I4: a script ran on a log that had lost entries")
	}
}

// TestOldBackup: I1. A database that was put back from before is whole in itself,
// and is found by what was signed since; so is one that was taken away.
func TestOldBackup(t *testing.T) {
	for name, restore := range map[string]func(db string, old []byte) error{
		"an old backup": func(db string, old []byte) error { return os.WriteFile(db, old, 0o600) },
		"no database":   func(db string, _ []byte) error { return os.Remove(db) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			run := []string{"run", "x", "a.sh", "--args", `["` + s.proof() + `"]`}
			s.must(t, append([]string{"run", "--grant"}, run[1:]...)...)
			db := filepath.Join(s.data(), daemon.DatabaseFile)
			old, err := os.ReadFile(db)
			if err != nil {
				t.Fatal(err)
			}
			s.must(t, run...)
			if err := restore(db, old); err != nil {
				t.Fatal(err)
			}
			s.found(t)
		})
	}
}

// TestWalDeleted: I1. Who deletes the file beside the database that holds the last
// changes takes entries away of which callers were told: that is found.
// What was signed covers each run that was answered.
func TestWalDeleted(t *testing.T) {
	s := newSite(t)
	s.layKept(t)
	k := &killing{T: t, site: s, proofs: filepath.Join(s.dir, "proofs"), acks: map[string]ack{}, started: map[string]bool{}, random: rand.New(rand.NewPCG(5, 6))}
	if err := os.Mkdir(k.proofs, 0o700); err != nil {
		t.Fatal(err)
	}
	k.kill("run")
	var told uint64
	for _, a := range k.acks {
		told = max(told, a.index)
	}
	wal := filepath.Join(s.data(), daemon.DatabaseFile+"-wal")
	if in, err := os.Stat(wal); err != nil || in.Size() == 0 {
		t.Fatalf("a host that was killed leaves no changes beside its database: %v", err)
	}
	if err := errors.Join(os.Remove(wal), os.Remove(wal[:len(wal)-len("wal")]+"shm")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	h, err := s.started(t)
	if h != nil {
		defer func() {
			if err := h.Close(context.Background()); err != nil && !t.Failed() {
				t.Logf("closing: %v", err)
			}
		}()
	}
	if errors.Is(err, notary.ErrLoss) {
		s.found(t)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// The host was so fast that all of which somebody was told, or that was signed,
	// had gone into the database already: then nothing may be amiss.
	hashes, _, err := leaves(h)
	if err != nil || uint64(len(hashes)) <= told {
		t.Errorf("the log has %d entries, callers were told of entry %d, and a host starts; error %v", len(hashes), told, err)
	}
}
