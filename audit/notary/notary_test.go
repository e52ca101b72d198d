package notary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/store/memstore"
)

// A house is a log with its notary. What is below the notary can be replaced.
type house struct {
	audit.Sink
	dir string
	log *audit.Log
	*notary.Notary
	change func(*notary.Config) // what is different for the next process; nil: nothing
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{Sink: memstore.New(), dir: t.TempDir()}
	if err := os.Mkdir(h.second(), 0o700); err != nil {
		t.Fatal(err)
	}
	h.reopen(t)
	return h
}

func (h *house) data() string   { return filepath.Join(h.dir, "data") }
func (h *house) second() string { return filepath.Join(h.dir, "second") }
func (h *house) state() string  { return filepath.Join(h.dir, "state") }

// reopen is what the next process does.
func (h *house) reopen(t testing.TB) {
	t.Helper()
	h.log = audit.NewLog(h)
	c := notary.Config{Log: h.log, Data: h.data(), Second: h.second(), State: h.state(), Tenant: "@host", Logger: slog.New(slog.DiscardHandler)}
	if h.change != nil {
		h.change(&c)
	}
	n, err := notary.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.Notary = n
}

// write writes n entries.
func (h *house) write(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		if _, err := h.log.Append(t.Context(), audit.Entry{Tenant: fmt.Sprint("tenant ", i%3), Kind: audit.Refusal, Subject: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *house) sign(t testing.TB) audit.Checkpoint {
	t.Helper()
	c, err := h.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h *house) entries(t testing.TB) []audit.Entry {
	t.Helper()
	var list []audit.Entry
	for leaf, err := range h.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, leaf.Entry)
	}
	return list
}

// replace puts another log below: of those entries, computed anew.
func (h *house) replace(t testing.TB, entries []audit.Entry) {
	t.Helper()
	h.Sink = memstore.New()
	log := audit.NewLog(h.Sink)
	for _, e := range entries {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	h.reopen(t)
}

// verify verifies against every place.
func (h *house) verify(t testing.TB) (audit.Verified, error) {
	t.Helper()
	keys, err := h.Keys()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	keepers, err := h.Claims()
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.log.VerifyClaims(t.Context(), keys, nil, keepers...)
	return v, errors.Join(err, h.Missing(t.Context()))
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// B7: what is signed stands in three places, and the log adds up with each; where
// nothing was written nothing is signed.
func TestCheckpoint(t *testing.T) {
	h := newHouse(t)
	if err := h.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := h.entries(t); len(e) != 1 || e[0].Kind != audit.Keeping || e[0].Subject != "key" {
		t.Errorf("the first key has no entry: %+v", e)
	}
	var last audit.Checkpoint
	for i := range 5 {
		h.write(t, i)
		c := h.sign(t)
		if again := h.sign(t); !bytes.Equal(again.Note, c.Note) {
			t.Errorf("what was signed is signed again:\n%s\n%s", c.Note, again.Note)
		}
		if i > 0 && c.Tree.Size != last.Tree.Size+uint64(i) {
			t.Errorf("it covers %d entries", c.Tree.Size)
		}
		last = c
		h.reopen(t)
		if err := h.Check(t.Context()); err != nil {
			t.Errorf("the next start: %v", err)
		}
	}
	v, err := h.verify(t)
	if err != nil || v.Signed != 11 || v.Claims != 11 {
		t.Errorf("got %+v, %v; want 5 checkpoints in each folder and the mark", v, err)
	}
	keys, err := h.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenCheckpoint(last.Note, keys...); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		for _, p := range []string{"data/keys/log.key", "data/keys/log.pub", "data/checkpoints"} {
			if in, err := os.Stat(filepath.Join(h.dir, p)); err != nil || in.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", p, in, err)
			}
		}
	}
}

// B7: each way of taking something away is found at the next start, before
// anything runs, and by verify, with its own word.
func TestLoss(t *testing.T) {
	tests := []struct {
		name   string
		tamper func(t *testing.T, h *house)
		want   error // of verify
		starts bool
	}{
		{"the last entries cut", func(t *testing.T, h *house) { h.replace(t, h.entries(t)[:8]) }, audit.ErrRolledBack, false},
		{"an old backup of the log", func(t *testing.T, h *house) { h.replace(t, h.entries(t)[:5]) }, audit.ErrRolledBack, false},
		{"an old backup of the data folder", func(t *testing.T, h *house) {
			h.replace(t, h.entries(t)[:5])
			cutCheckpoints(t, notary.File(h.data()), 1)
		}, audit.ErrRolledBack, false},
		{"and of the mark", func(t *testing.T, h *house) {
			h.replace(t, h.entries(t)[:5])
			cutCheckpoints(t, notary.File(h.data()), 1)
			remove(t, h.state())
		}, audit.ErrRolledBack, false},
		{"an entry edited, all behind it computed anew", func(t *testing.T, h *house) {
			e := h.entries(t)
			e[6].Subject = "edited"
			h.replace(t, e)
		}, audit.ErrAltered, false},
		{"and more written since", func(t *testing.T, h *house) {
			e := h.entries(t)
			e[6].Subject = "edited"
			h.replace(t, e)
			h.write(t, 9)
		}, audit.ErrAltered, false},
		{"and without the mark", func(t *testing.T, h *house) {
			e := h.entries(t)
			e[6].Subject = "edited"
			h.replace(t, e)
			remove(t, h.state())
		}, audit.ErrAltered, false},
		{"everything gone but the keys", func(t *testing.T, h *house) { h.replace(t, nil) }, audit.ErrRolledBack, false},
		{"the newest checkpoint deleted", func(t *testing.T, h *house) { cutCheckpoints(t, notary.File(h.data()), 1) }, audit.ErrMissing, true},
		{"all checkpoints deleted", func(t *testing.T, h *house) { remove(t, notary.File(h.data())) }, audit.ErrMissing, true},
		{"a bent checkpoint", func(t *testing.T, h *house) { bend(t, notary.File(h.data())) }, audit.ErrUnsigned, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.write(t, 5)
			h.sign(t)
			h.write(t, 6)
			h.sign(t)
			tt.tamper(t, h)
			if _, err := h.verify(t); !errors.Is(err, tt.want) {
				t.Errorf("verify: got %v, want %v", err, tt.want)
			}
			err := h.Check(t.Context())
			if tt.starts != (err == nil) || err != nil && !errors.Is(err, notary.ErrLoss) {
				t.Fatalf("the next start: got %v", err)
			}
			if tt.starts {
				// It is repaired, and the log tells of it.
				h.sign(t)
				if _, err := h.verify(t); err != nil {
					t.Errorf("after the next checkpoint: %v", err)
				}
				if e := h.entries(t); e[len(e)-1].Subject != "checkpoint gone" {
					t.Errorf("the log does not tell of it: %+v", e[len(e)-1])
				}
				return
			}
			if _, err := h.Checkpoint(t.Context()); !errors.Is(err, notary.ErrLoss) {
				t.Errorf("what is lost is signed: %v", err)
			}
			accept(t, h)
		})
	}
}

// accept accepts the loss: from then on everything adds up, and an entry tells.
func accept(t *testing.T, h *house) {
	t.Helper()
	h.reopen(t)
	if _, err := h.AcceptLoss(t.Context(), "op", "a disk failed"); err != nil {
		t.Fatal(err)
	}
	h.reopen(t)
	if err := h.Check(t.Context()); err != nil {
		t.Errorf("after the loss was accepted: %v", err)
	}
	if v, err := h.verify(t); err != nil || v.Signed != v.Tree.Size {
		t.Errorf("after the loss was accepted: %+v, %v", v, err)
	}
	found := false
	for _, e := range h.entries(t) {
		found = found || e.Subject == "accept-loss" && e.Actor == "op" && e.Fact("reason") == "a disk failed" && e.Fact("loss") != ""
	}
	if !found {
		t.Error("the log does not tell who accepted the loss")
	}
	if _, err := h.AcceptLoss(t.Context(), "op", "again"); !errors.Is(err, notary.ErrNoLoss) {
		t.Errorf("a second time: got %v, want ErrNoLoss", err)
	}
}

// cutCheckpoints removes the last n checkpoints of a file.
func cutCheckpoints(t testing.TB, path string, n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitAfter(string(text), "\n\n")
	parts = parts[:len(parts)-1-2*n]
	if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func bend(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndexByte(text, '=') - 10
	text[i] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The key: one that others may read, that is gone, or that was replaced, signs
// nothing.
func TestKey(t *testing.T) {
	tests := []struct {
		name   string
		tamper func(t *testing.T, h *house)
	}{
		{"it is gone", func(t *testing.T, h *house) { remove(t, filepath.Join(h.data(), "keys", "log.key")) }},
		{"the folder is gone", func(t *testing.T, h *house) { remove(t, filepath.Join(h.data(), "keys")) }},
		{"the whole data folder is gone", func(t *testing.T, h *house) { remove(t, h.data()) }},
		{"it is cut", func(t *testing.T, h *house) {
			if err := os.Truncate(filepath.Join(h.data(), "keys", "log.key"), 20); err != nil {
				t.Fatal(err)
			}
		}},
		{"it is another", func(t *testing.T, h *house) {
			other := newHouse(t)
			other.sign(t)
			remove(t, filepath.Join(h.data(), "keys"))
			if err := os.CopyFS(filepath.Join(h.data(), "keys"), os.DirFS(filepath.Join(other.data(), "keys"))); err != nil {
				t.Fatal(err)
			}
			keys := filepath.Join(h.data(), "keys")
			if err := errors.Join(os.Chmod(keys, 0o700), os.Chmod(filepath.Join(keys, "log.key"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	chmod := func(name string, mode os.FileMode) func(t *testing.T, h *house) {
		return func(t *testing.T, h *house) {
			if err := os.Chmod(filepath.Join(h.data(), "keys", name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	type test = struct {
		name   string
		tamper func(t *testing.T, h *house)
	}
	tests = append(tests, test{"the next one is no key", func(t *testing.T, h *house) {
		if err := ownfile.Write(filepath.Join(h.data(), "keys", "log.key.next"), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}})
	if runtime.GOOS != "windows" {
		tests = append(tests, test{"others may read it", chmod("log.key", 0o640)}, test{"others may write to its folder", chmod("", 0o770)})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.write(t, 3)
			h.sign(t)
			tt.tamper(t, h)
			h.reopen(t)
			h.write(t, 1)
			if _, err := h.Checkpoint(t.Context()); !errors.Is(err, notary.ErrKey) && !errors.Is(err, notary.ErrLoss) {
				t.Fatalf("got %v, want ErrKey or ErrLoss", err)
			}
			if err := h.Check(t.Context()); err == nil {
				t.Error("the next start takes it")
			}
			if !strings.Contains(tt.name, "others") {
				accept(t, h)
				return
			}
			// It is there: its remedy is its mode, and no other key.
			if _, err := h.AcceptLoss(t.Context(), "op", "a wrong mode"); !errors.Is(err, ownfile.ErrPrivate) {
				t.Errorf("accepting a loss: got %v, want ErrPrivate", err)
			}
			if _, err := os.Stat(filepath.Join(h.data(), "keys", "log.key")); err != nil {
				t.Errorf("the key was put aside: %v", err)
			}
		})
	}
}

// The making of the first key is broken off after any of its steps: the next one
// who signs finishes it or makes one; and no log names a key that nobody has.
func TestFirstKeyBrokenOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		gone   []string
		next   bool // the new key is laid beside still
		signed uint64
	}{
		{"all was done but that", nil, true, 3},
		{"the secret key does not stand in its place", []string{"log.key"}, true, 3},
		{"nor does the public one", []string{"log.key", "log.pub"}, true, 3},
	} {
		h := newHouse(t)
		if err := h.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys := filepath.Join(h.data(), "keys")
		secret, err := os.ReadFile(filepath.Join(keys, "log.key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ownfile.Write(filepath.Join(keys, "log.key.next"), secret); err != nil {
			t.Fatal(err)
		}
		for _, name := range tt.gone {
			remove(t, filepath.Join(keys, name))
		}
		h.reopen(t)
		h.write(t, 2)
		h.sign(t)
		if v, err := h.verify(t); err != nil || v.Signed != tt.signed {
			t.Errorf("%s: %+v, %v", tt.name, v, err)
		}
		if now, err := os.ReadFile(filepath.Join(keys, "log.key")); err != nil || !bytes.Equal(now, secret) {
			t.Errorf("%s: another key signs, %v", tt.name, err)
		}
		// Before the log named it: it is dropped, and another one made.
		empty := newHouse(t)
		keys = filepath.Join(empty.data(), "keys")
		if err := ownfile.MakeFolder(keys); err != nil {
			t.Fatal(err)
		}
		if err := ownfile.Write(filepath.Join(keys, "log.key.next"), secret); err != nil {
			t.Fatal(err)
		}
		empty.sign(t)
		if now, err := os.ReadFile(filepath.Join(keys, "log.key")); err != nil || bytes.Equal(now, secret) {
			t.Errorf("a key signs that the log does not name, %v", err)
		}
	}
}

// A rotation is broken off after any of its steps, and the next one who signs
// finishes it or undoes it.
func TestRotate(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	next, err := h.Rotate(t.Context(), "op", "a year has passed")
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, 2)
	h.sign(t)
	if v, err := h.verify(t); err != nil || v.Key != next {
		t.Errorf("got %+v, %v; want the key %s", v, err, next)
	}
	if keys, err := h.Keys(); err != nil || len(keys) != 2 || keys[1] != next {
		t.Errorf("the keys are %v, %v", keys, err)
	}
	// Before the log said so: the new key is dropped.
	path := filepath.Join(h.data(), "keys", "log.key")
	stranger, err := audit.NewSigningKey(next.Origin())
	if err != nil {
		t.Fatal(err)
	}
	if err := ownfile.Write(path+".next", []byte(stranger.Secret()+"\n")); err != nil {
		t.Fatal(err)
	}
	h.write(t, 1)
	h.sign(t)
	if _, err := os.Stat(path + ".next"); err == nil {
		t.Error("a key of which the log says nothing stays")
	}
	// After the log said so, and before the files did: it takes its place.
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(h.data(), "keys", "log.pub"))
	if err != nil {
		t.Fatal(err)
	}
	checkpoints, err := os.ReadFile(notary.File(h.data()))
	if err != nil {
		t.Fatal(err)
	}
	third, err := h.Rotate(t.Context(), "op", "")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{path + ".next": secret, path: old, filepath.Join(h.data(), "keys", "log.pub"): public, notary.File(h.data()): checkpoints} {
		if err := ownfile.Write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, h.state())
	remove(t, h.second())
	if err := os.Mkdir(h.second(), 0o700); err != nil {
		t.Fatal(err)
	}
	h.reopen(t)
	h.sign(t)
	if v, err := h.verify(t); err != nil || v.Key != third {
		t.Errorf("got %+v, %v; want the key %s", v, err, third)
	}
}

// A crash in the middle of a write leaves a part of a checkpoint: it is no loss,
// and the next one takes its place.
func TestTornCheckpoint(t *testing.T) {
	h := newHouse(t)
	h.write(t, 3)
	h.sign(t)
	path := notary.File(h.data())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		text := append(bytes.Clone(whole), whole[:cut]...)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		h.reopen(t)
		if err := h.Check(t.Context()); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	h.write(t, 1)
	h.sign(t)
	if _, err := h.verify(t); err != nil {
		t.Error(err)
	}
}

// Several processes sign one log at once: each checkpoint goes on from the last.
func TestManyNotaries(t *testing.T) {
	h := newHouse(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			other := &house{Sink: h.Sink, dir: h.dir}
			other.reopen(t)
			for range 10 {
				r, err := other.log.Append(context.Background(), audit.Entry{Tenant: "t", Kind: audit.Refusal})
				if err != nil {
					t.Error(err)
					return
				}
				p, err := other.Prove(context.Background(), r.Index())
				if err != nil || p.Index != r.Index() || audit.LeafHash(p.Leaf) != r.Hash() {
					t.Errorf("the receipt of entry %d: %v", r.Index(), err)
				}
			}
		})
	}
	wg.Wait()
	if v, err := h.verify(t); err != nil || v.Signed != 41 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// A receipt holds for each entry, also after the file of inner hashes was cut,
// bent or lost.
func TestProve(t *testing.T) {
	h := newHouse(t)
	h.write(t, 20)
	tree := filepath.Join(h.data(), "tree")
	for _, tt := range []struct {
		name string
		harm func() error
	}{
		{"nothing", func() error { return nil }},
		{"gone", func() error { return os.Remove(tree) }},
		{"cut", func() error { return os.Truncate(tree, 100) }},
		{"bent", func() error { return os.WriteFile(tree, make([]byte, 64*15), 0o600) }},
	} {
		if err := tt.harm(); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(20) {
			p, err := h.Prove(t.Context(), i)
			if err != nil || p.Index != i {
				t.Fatalf("%s: entry %d: %v", tt.name, i, err)
			}
			text, err := p.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			keys, err := h.Keys()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := audit.OpenProof(text, keys...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := h.Prove(t.Context(), 99); !errors.Is(err, audit.ErrNoEntry) {
		t.Errorf("an entry that is not there: got %v", err)
	}
}

// B7, fail closed: the second folder is not there for a while. What can be signed is, the
// error says so, nothing runs meanwhile, and the folder catches up.
func TestSecondFolderAway(t *testing.T) {
	h := newHouse(t)
	h.write(t, 1)
	h.sign(t)
	if err := os.Rename(h.second(), h.second()+".away"); err != nil {
		t.Fatal(err)
	}
	h.write(t, 1)
	c, err := h.Checkpoint(t.Context())
	if !errors.Is(err, notary.ErrPlace) || !strings.Contains(err.Error(), h.second()) || c.Tree.Size != 3 {
		t.Errorf("the second folder is away: got %d entries signed, %v", c.Tree.Size, err)
	}
	if err := h.log.Ready(t.Context()); !errors.Is(err, notary.ErrPlace) {
		t.Errorf("Ready says %v", err)
	}
	if p, err := h.Prove(t.Context(), 2); err != nil || p.Index != 2 {
		t.Errorf("what was signed has no receipt: %v", err)
	}
	if err := h.Check(t.Context()); !errors.Is(err, notary.ErrPlace) {
		t.Errorf("the next start: got %v, want ErrPlace", err)
	}
	if err := os.Rename(h.second()+".away", h.second()); err != nil {
		t.Fatal(err)
	}
	h.sign(t)
	if err := h.log.Ready(t.Context()); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if v, err := h.verify(t); err != nil || v.Claims != 5 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// A checkpoint that somebody else kept, such as that of a receipt, tells of a log
// that was rolled back or altered.
func TestFits(t *testing.T) {
	h := newHouse(t)
	h.write(t, 5)
	early := h.sign(t)
	h.write(t, 5)
	late := h.sign(t)
	for _, c := range []audit.Checkpoint{early, late, early} {
		if err := h.Fits(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	entries := h.entries(t)
	h.replace(t, entries[:8])
	if err := h.Fits(t.Context(), early); err != nil {
		t.Error(err)
	}
	if err := h.Fits(t.Context(), late); !errors.Is(err, audit.ErrRolledBack) {
		t.Errorf("got %v, want ErrRolledBack", err)
	}
	entries[2].Subject = "edited"
	h.replace(t, entries)
	for _, c := range []audit.Checkpoint{early, late} {
		if err := h.Fits(t.Context(), c); !errors.Is(err, audit.ErrAltered) {
			t.Errorf("got %v, want ErrAltered", err)
		}
	}
}

// A process that goes on for long finds a loss in the middle: it admits nothing
// from then on, and writes the endings of what runs.
func TestLossWhileRunning(t *testing.T) {
	h := newHouse(t)
	h.write(t, 5)
	h.sign(t)
	admit := func() error {
		_, err := h.log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Admission})
		return err
	}
	if err := errors.Join(admit(), h.log.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	entries := h.entries(t)
	h.Sink = memstore.New() // behind the back of the running process
	for _, e := range entries[:3] {
		if _, err := audit.NewLog(h.Sink).Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Prove(t.Context(), 6); !errors.Is(err, notary.ErrLoss) {
		t.Errorf("the receipt: got %v, want ErrLoss", err)
	}
	for _, err := range []error{admit(), h.log.Ready(t.Context())} {
		if !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, notary.ErrLoss) {
			t.Errorf("after the loss: got %v, want ErrUnavailable because of ErrLoss", err)
		}
	}
	if _, err := h.log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Ending}); err != nil {
		t.Errorf("the ending of what runs: %v", err)
	}
	if _, err := h.AcceptLoss(t.Context(), "op", "seen"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(admit(), h.log.Ready(t.Context())); err != nil {
		t.Errorf("after it was accepted: %v", err)
	}
}

// What somebody puts among the checkpoints that the log's key has not signed is
// in no receipt.
func TestForgedCheckpoint(t *testing.T) {
	h := newHouse(t)
	h.write(t, 5)
	c := h.sign(t)
	stranger, err := audit.NewSigningKey(c.Origin)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := stranger.Checkpoint(c.Tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notary.File(h.data()), append(forged.Note, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := h.Prove(t.Context(), 2); !errors.Is(err, notary.ErrLoss) || !errors.Is(err, audit.ErrUnsigned) {
		t.Errorf("got %+v, %v; want ErrUnsigned", p, err)
	}
}
