package notary_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/audit/notary"
)

// B7: nothing in the second folder can be renamed, as where this user can only add: a
// loss is accepted even so. The log goes on under another name; what was lost stands
// where it stood, and is no loss any more.
func TestLossWhereNothingCanBeMoved(t *testing.T) {
	h := newHouse(t)
	// A path that is so long that a file in it cannot get a longer name: this holds for root too.
	second := h.second()
	for room := unix.PathMax - 70 - len(second); room > 1; room = unix.PathMax - 70 - len(second) {
		second = filepath.Join(second, strings.Repeat("d", min(room-1, 200)))
	}
	if err := os.MkdirAll(second, 0o700); err != nil {
		t.Fatal(err)
	}
	h.change = func(c *notary.Config) { c.Second = second }
	h.reopen(t)
	h.write(t, 3)
	c := h.sign(t)
	entries := h.entries(t)
	h.write(t, 3)
	h.sign(t)
	place := filepath.Join(second, strings.TrimPrefix(c.Origin, "tracon/")+".checkpoints")
	before, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(place, place+".lost-20060102T150405.000000"); err == nil {
		t.Fatal("the file can be renamed: the path is too short for this test")
	}
	h.replace(t, entries)
	if err := h.Check(t.Context()); !errors.Is(err, notary.ErrLoss) {
		t.Fatalf("a start: got %v, want ErrLoss", err)
	}
	h.reopen(t)
	if _, err := h.AcceptLoss(t.Context(), "op", "seen"); err != nil {
		t.Fatal(err)
	}
	h.reopen(t)
	if err := errors.Join(h.Check(t.Context()), h.Others(t.Context())); err != nil {
		t.Errorf("the next start: %v", err)
	}
	if now := h.sign(t); now.Origin == c.Origin {
		t.Error("the log goes on under the name of which the folder tells more")
	}
	if after, err := os.ReadFile(place); err != nil || !bytes.Equal(after, before) {
		t.Errorf("what stood in the folder was changed: %v", err)
	}
}
