package notary_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/witness"
)

// witnessed has a witness cosign what h signs from now on; down stops it.
func witnessed(t *testing.T, h *house, quorum int) (down func()) {
	t.Helper()
	keys, err := h.Keys()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	s, err := witness.NewServer(filepath.Join(h.dir, "witness"), "witness", keys, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	h.change = func(c *notary.Config) {
		w, err := witness.Parse(server.URL + " " + s.Key().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Witnesses, c.Quorum = []notary.Witness{w}, quorum
	}
	h.reopen(t)
	return server.Close
}

// keep returns what puts the folders of h back as they are now.
func (h *house) keep(t *testing.T, folders ...string) (restore func()) {
	t.Helper()
	copies := t.TempDir()
	for i, f := range folders {
		if err := os.CopyFS(filepath.Join(copies, fmt.Sprint(i)), os.DirFS(f)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		for i, f := range folders {
			remove(t, f)
			if err := os.CopyFS(f, os.DirFS(filepath.Join(copies, fmt.Sprint(i)))); err != nil {
				t.Fatal(err)
			}
		}
		keys := filepath.Join(h.data(), "keys")
		if err := errors.Join(os.Chmod(keys, 0o700), os.Chmod(filepath.Join(keys, "log.key"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// B7: the keys, the checkpoints and the mark are removed, and an old database is put
// back. The log itself names its key, so none is made behind it; and after the loss
// was accepted the second folder is asked about that key, with which it goes on
// telling of what was lost.
func TestNoFreshKeyOverANamedOne(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	h.sign(t)
	old := h.entries(t)
	h.write(t, 5)
	lost := h.sign(t)
	was, err := h.Keys()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(h.data(), "keys"), notary.File(h.data()), h.state()} {
		remove(t, path)
	}
	h.replace(t, old)
	for name, f := range map[string]func() error{
		"a start":      func() error { return h.Check(t.Context()) },
		"a checkpoint": func() error { _, err := h.Checkpoint(t.Context()); return err },
	} {
		if err := f(); !errors.Is(err, notary.ErrKey) || !strings.Contains(err.Error(), string(was[0])) {
			t.Errorf("%s: got %v, want ErrKey with the key that the log names", name, err)
		}
	}
	if err := h.Others(t.Context()); !errors.Is(err, notary.ErrLoss) || !errors.Is(err, audit.ErrRolledBack) {
		t.Errorf("verify asks the second folder: got %v, want ErrRolledBack", err)
	}
	if _, err := h.AcceptLoss(t.Context(), "op", "seen"); err != nil {
		t.Fatal(err)
	}
	e := accepted(t, h)
	if e.Fact("lostSize") != fmt.Sprint(lost.Tree.Size) || e.Fact("lostRoot") != lost.Tree.Root.String() || e.Fact("lostKey") != string(was[0]) {
		t.Errorf("the entry does not say what was lost: %+v", e)
	}
	h.reopen(t)
	if err := errors.Join(h.Check(t.Context()), h.Others(t.Context())); err != nil {
		t.Errorf("after the loss was accepted: %v", err)
	}
	if now, err := h.Keys(); err != nil || len(now) != 1 || now[0] == was[0] {
		t.Errorf("the keys are %v, %v", now, err)
	}
	// Another checkpoint of the old key appears: no loss of that was accepted.
	forked := newHouse(t)
	forked.write(t, 30)
	private, err := audit.NewSigningKey(lost.Origin)
	if err != nil {
		t.Fatal(err)
	}
	tip, err := forked.log.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := private.Checkpoint(audit.Tree{Size: tip.Size(), Root: tip.Root()})
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(h.second(), strings.TrimPrefix(lost.Origin, "tracon/")+".checkpoints")
	if err := ownfile.Append(place, append(c.Note, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(t.Context()); !errors.Is(err, notary.ErrLoss) {
		t.Errorf("more of the old key: got %v, want ErrLoss", err)
	}
}

// B7: a database from before the log's first key is put back, or an empty one. Each of
// what else may have been left tells of it at a start, and after the loss was accepted
// the log goes on. Where nothing was left it is like a new installation, which only a
// receipt, a kept public key or a kept checkpoint shows to be none.
func TestDatabaseFromBeforeTheFirstKey(t *testing.T) {
	everything := func(h *house) []string {
		return []string{filepath.Join(h.data(), "keys", "log.key"), filepath.Join(h.data(), "keys", "log.pub"), notary.File(h.data()), h.state(), h.second()}
	}
	for _, tt := range []struct {
		name  string
		stays int // of everything; the key has its public one with it
		want  error
	}{
		{"the keys stay", 0, notary.ErrLoss},
		{"the public key stays", 1, notary.ErrKey},
		{"the checkpoints stay", 2, notary.ErrKey},
		{"the mark stays", 3, notary.ErrKey},
		{"the second folder stays", 4, notary.ErrKey},
		{"nothing stays", -1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.write(t, 2)
			before := h.entries(t)
			h.write(t, 3)
			first := h.sign(t)
			was, err := h.Keys()
			if err != nil {
				t.Fatal(err)
			}
			for i, path := range everything(h) {
				if i != tt.stays && (tt.stays != 0 || i != 1) {
					remove(t, path)
				}
			}
			if err := os.MkdirAll(h.second(), 0o700); err != nil {
				t.Fatal(err)
			}
			h.replace(t, before)
			h.reopen(t)
			err = h.Check(t.Context())
			if !errors.Is(err, tt.want) {
				t.Fatalf("a start: got %v, want %v", err, tt.want)
			}
			if tt.want == nil {
				now, err := h.Keys()
				if _, bad := audit.OpenCheckpoint(first.Note, now...); err != nil || len(now) != 1 || now[0] == was[0] || bad == nil {
					t.Errorf("the keys are %v, %v: what was kept of the old log holds", now, err)
				}
				if err := h.Fits(t.Context(), first); !errors.Is(err, audit.ErrBroken) {
					t.Errorf("the kept checkpoint: got %v, want that it does not fit", err)
				}
				return
			}
			if err := h.log.Ready(t.Context()); err == nil {
				t.Error("an admission would be taken")
			}
			if _, err := h.AcceptLoss(t.Context(), "op", "seen"); err != nil {
				t.Fatal(err)
			}
			accepted(t, h)
			h.reopen(t)
			if err := h.Check(t.Context()); err != nil {
				t.Errorf("after the loss was accepted: %v", err)
			}
		})
	}
}

// accepted returns the entry of the loss that was accepted last.
func accepted(t *testing.T, h *house) (last audit.Entry) {
	t.Helper()
	for _, e := range h.entries(t) {
		if e.Kind == audit.Keeping && e.Subject == "accept-loss" {
			last = e
		}
	}
	if last.Subject == "" {
		t.Fatal("no loss was accepted")
	}
	return last
}

// A log names what it will: no name in it becomes a path outside of the second folder.
func TestNamedOriginIsNoPath(t *testing.T) {
	h := newHouse(t)
	h.sign(t)
	stranger, err := audit.NewSigningKey("tracon/../outside")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "outside.checkpoints"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.log.Append(t.Context(), audit.Entry{Tenant: "@host", Kind: audit.Keeping, Subject: "key", Facts: audit.Facts("key", string(stranger.Public()))}); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("the file beside the folder was looked at: %v", err)
	}
}

// B7: several hosts write one log, each with a key of its own. One that joins gets
// one; one whose key is gone does not, and is known by its folder and machine.
func TestKeysOfSeveralHosts(t *testing.T) {
	h := newHouse(t)
	h.change = func(c *notary.Config) { c.Shared = true }
	h.reopen(t)
	h.write(t, 3)
	h.sign(t)
	other := &house{Sink: h.Sink, dir: t.TempDir(), change: func(c *notary.Config) {
		c.Shared, c.Second = true, h.second()
	}}
	other.reopen(t)
	if err := other.Check(t.Context()); err != nil {
		t.Fatalf("another host: %v", err)
	}
	other.sign(t)
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("the first host then: %v", err)
	}
	remove(t, other.data())
	remove(t, other.state())
	other.reopen(t)
	if err := other.Check(t.Context()); !errors.Is(err, notary.ErrKey) {
		t.Errorf("the other host without its key: got %v, want ErrKey", err)
	}
}

// B7: a quorum is of cosignatures that were made now. Those on a checkpoint that was
// kept say nothing of a data folder that was rolled back to it.
func TestQuorumIsOfNow(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	h.sign(t)
	down := witnessed(t, h, 1)
	h.write(t, 1)
	c := h.sign(t)
	entries, restore := h.entries(t), h.keep(t, h.data(), h.second(), h.state())
	h.write(t, 4)
	h.sign(t)
	restore()
	h.replace(t, entries)
	if again, err := h.Ask(t.Context()); !errors.Is(err, audit.ErrRolledBack) || len(again) != 1 || again[0].OK {
		t.Errorf("verify asks the witness: got %+v, %v; want ErrRolledBack", again, err)
	}
	down()
	for name, f := range map[string]func() error{
		"a start":      func() error { return h.Check(t.Context()) },
		"a checkpoint": func() error { _, err := h.Checkpoint(t.Context()); return err },
		"a receipt":    func() error { _, err := h.Prove(t.Context(), c.Tree.Size-1); return err },
	} {
		h.reopen(t)
		if err := f(); !errors.Is(err, notary.ErrQuorum) {
			t.Errorf("%s with the witness down: got %v, want ErrQuorum", name, err)
		}
		if err := h.log.Ready(t.Context()); !errors.Is(err, notary.ErrQuorum) {
			t.Errorf("after %s with the witness down: Ready says %v", name, err)
		}
	}
}

// A quorum that is away for a while stops what is new; when it is back, so is the house.
func TestQuorumComesBack(t *testing.T) {
	h := newHouse(t)
	h.sign(t)
	down := witnessed(t, h, 1)
	h.write(t, 1)
	h.sign(t)
	down()
	h.write(t, 1)
	if _, err := h.Checkpoint(t.Context()); !errors.Is(err, notary.ErrQuorum) {
		t.Fatalf("got %v, want ErrQuorum", err)
	}
	log := h.log
	witnessed(t, h, 1) // the same folder, at another address
	h.log = log
	c := notary.Config{Log: log, Data: h.data(), Second: h.second(), State: h.state(), Tenant: "@host", Logger: slog.New(slog.DiscardHandler)}
	h.change(&c)
	n, err := notary.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Checkpoint(t.Context()); err != nil {
		t.Errorf("with the witness back: %v", err)
	}
}

// B7: a loss that a witness alone sees is accepted like any other: the log goes on
// under another name, of which the witness has seen nothing.
func TestLossThatAWitnessSees(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	h.sign(t)
	witnessed(t, h, 0)
	h.write(t, 1)
	h.sign(t)
	entries, restore := h.entries(t), h.keep(t, h.data(), h.second(), h.state())
	h.write(t, 4)
	lost := h.sign(t)
	restore()
	h.replace(t, entries)
	if err := h.Check(t.Context()); !errors.Is(err, notary.ErrLoss) || !errors.Is(err, audit.ErrRolledBack) {
		t.Fatalf("a start: got %v, want ErrRolledBack", err)
	}
	was, err := h.Keys()
	if err != nil {
		t.Fatal(err)
	}
	h.reopen(t)
	if _, err := h.AcceptLoss(t.Context(), "op", "seen"); err != nil {
		t.Fatal(err)
	}
	if e := accepted(t, h); e.Fact("lostSize") != fmt.Sprint(lost.Tree.Size) || e.Fact("lostRoot") != lost.Tree.Root.String() || e.Fact("lostKey") != string(was[0]) {
		t.Errorf("the entry does not say what was lost: %+v", e)
	}
	h.reopen(t)
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("the next start: %v", err)
	}
	if _, err := h.AcceptLoss(t.Context(), "op", "again"); !errors.Is(err, notary.ErrNoLoss) {
		t.Errorf("a second time: got %v, want ErrNoLoss", err)
	}
}

// The word of a witness is not signed: an objection that proves nothing is no loss,
// counts towards no quorum, and leads no operator to accept anything.
func TestObjectionIsAHint(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	h.sign(t)
	key, err := witness.NewSigningKey("witness")
	if err != nil {
		t.Fatal(err)
	}
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte("99\n"))
	}))
	t.Cleanup(liar.Close)
	for quorum, want := range []error{nil, notary.ErrQuorum} {
		h.change = func(c *notary.Config) {
			w, err := witness.Parse(liar.URL + " " + key.Public().String())
			if err != nil {
				t.Fatal(err)
			}
			c.Witnesses, c.Quorum = []notary.Witness{w}, quorum
		}
		h.reopen(t)
		for what, f := range map[string]func() error{
			"a start":      func() error { return h.Check(t.Context()) },
			"a checkpoint": func() error { h.write(t, 1); _, err := h.Checkpoint(t.Context()); return err },
			"verify":       func() error { _, err := h.Ask(t.Context()); return err },
		} {
			if err := f(); !errors.Is(err, want) || errors.Is(err, audit.ErrBroken) {
				t.Errorf("quorum %d, %s: got %v, want %v", quorum, what, err, want)
			}
		}
		if answers, _ := h.Ask(t.Context()); len(answers) != 1 || answers[0].OK || !answers[0].Objects {
			t.Errorf("quorum %d: the answers are %+v", quorum, answers)
		}
		if _, err := h.AcceptLoss(t.Context(), "op", "the witness said so"); !errors.Is(err, notary.ErrNoLoss) {
			t.Errorf("quorum %d, accepting a loss: got %v, want ErrNoLoss", quorum, err)
		}
	}
}

// B7: a place is only ever added to. Whatever was cut there stays, is no loss, and
// the next checkpoint stands behind it; who can only add cannot hide the newest one.
func TestPlacesAreOnlyAddedTo(t *testing.T) {
	h := newHouse(t)
	h.write(t, 1)
	c := h.sign(t)
	place := filepath.Join(h.second(), strings.TrimPrefix(c.Origin, "tracon/")+".checkpoints")
	before := append(bytes.Clone(c.Note), '\n')
	for i, cut := range []int{1, 20, len(before) - 60, len(before) - 1} {
		at := place
		if i > 0 {
			at = fmt.Sprint(place, ".", i+1)
		}
		if err := ownfile.Append(at, before[:cut]); err != nil {
			t.Fatal(err)
		}
		torn, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		h.reopen(t)
		h.write(t, 1)
		if err := h.Check(t.Context()); err != nil {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
		last := h.sign(t)
		if now, err := os.ReadFile(at); err != nil || !bytes.Equal(now, torn) {
			t.Errorf("cut after %d bytes: what stood there was changed, %v", cut, err)
		}
		if now, err := os.ReadFile(fmt.Sprint(place, ".", i+2)); err != nil || string(now) != string(last.Note)+"\n" {
			t.Errorf("cut after %d bytes: the next one is %q, %v", cut, now, err)
		}
		before = append(bytes.Clone(last.Note), '\n')
	}
	if v, err := h.verify(t); err != nil || v.Signed != v.Tree.Size || v.Claims != 11 {
		t.Errorf("got %+v, %v", v, err)
	}
	whole := h.keep(t, h.second())
	for name, text := range map[string][]byte{
		"an old one behind the newest": append(bytes.Clone(c.Note), '\n'),
		"what is none":                 bytes.Repeat([]byte("x"), audit.MaxNote+3),
		"and has gaps":                 bytes.Repeat([]byte("x\n\n"), 1<<16),
	} {
		if err := ownfile.Append(place+".5", text); err != nil {
			t.Fatal(err)
		}
		if err := h.Check(t.Context()); !errors.Is(err, notary.ErrLoss) {
			t.Errorf("%s was added: got %v, want ErrLoss", name, err)
		}
		whole()
		if err := ownfile.Append(place+".6", text); err != nil {
			t.Fatal(err)
		}
		if err := h.Check(t.Context()); !errors.Is(err, notary.ErrLoss) {
			t.Errorf("%s was added in another file: got %v, want ErrLoss", name, err)
		}
		whole()
	}
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("put back: %v", err)
	}
}
