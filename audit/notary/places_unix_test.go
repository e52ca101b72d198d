//go:build unix

package notary_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/audit/notary"
)

// B7, fail closed: what is no file of the log's own in a place of anchors, be it a
// link or a pipe that nobody reads, keeps everything from running, at once, and is
// neither followed nor written to.
func TestPlacesRefuse(t *testing.T) {
	for name, put := range map[string]func(path, victim string) error{
		"a link": func(path, victim string) error { return os.Symlink(victim, path) },
		"a pipe": func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
	} {
		for _, at := range []string{"second", "here", "mark", "key", "next"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				h := newHouse(t)
				h.change = func(c *notary.Config) { c.StateRequired = true }
				h.write(t, 2)
				c := h.sign(t)
				marks, err := filepath.Glob(filepath.Join(h.state(), "mark-*"))
				if err != nil || len(marks) != 1 {
					t.Fatal(marks, err)
				}
				keys := filepath.Join(h.data(), "keys", "log.key")
				path := map[string]string{
					"second": filepath.Join(h.second(), strings.TrimPrefix(c.Origin, "tracon/")+".checkpoints"),
					"here":   notary.File(h.data()), "mark": marks[0], "key": keys, "next": keys + ".next",
				}[at]
				victim := filepath.Join(h.dir, "victim")
				if err := os.Rename(path, victim); err != nil && at != "next" {
					t.Fatal(err)
				}
				if err := put(path, victim); err != nil {
					t.Fatal(err)
				}
				before, _ := os.ReadFile(victim)
				h.reopen(t)
				h.write(t, 1)
				want := notary.ErrLoss
				switch at {
				case "second":
					want = notary.ErrPlace
				case "key", "next":
					want = notary.ErrKey
				}
				if err := h.Check(t.Context()); !errors.Is(err, want) {
					t.Errorf("a start: got %v, want %v", err, want)
				}
				if _, err := h.Checkpoint(t.Context()); !errors.Is(err, want) {
					t.Errorf("a checkpoint: got %v, want %v", err, want)
				}
				if err := h.log.Ready(t.Context()); !errors.Is(err, want) {
					t.Errorf("Ready says %v", err)
				}
				if after, _ := os.ReadFile(victim); string(after) != string(before) {
					t.Error("what the link leads to was written")
				}
			})
		}
	}
}

// B7, fail closed: a folder of the mark that was named and cannot be written keeps
// everything from running; one that nobody named is told, and there are receipts.
func TestStateThatCannotBeWritten(t *testing.T) {
	for _, required := range []bool{false, true} {
		h := newHouse(t)
		h.change = func(c *notary.Config) { c.StateRequired = required }
		if err := os.WriteFile(h.state(), nil, 0o600); err != nil { // a file where the folder should be
			t.Fatal(err)
		}
		h.reopen(t)
		h.write(t, 2)
		check := h.Check(t.Context())
		_, signed := h.Checkpoint(t.Context())
		for what, err := range map[string]error{"a start": check, "a checkpoint": signed, "Ready": h.log.Ready(t.Context())} {
			if required != errors.Is(err, notary.ErrPlace) || !required && err != nil {
				t.Errorf("required %v, %s: got %v", required, what, err)
			}
		}
		if p, err := h.Prove(t.Context(), 1); err != nil || p.Index != 1 {
			t.Errorf("required %v: no receipt: %v", required, err)
		}
		amiss := 0
		for _, p := range h.Places() {
			if p.Err != nil {
				amiss++
			}
			if p.Path == h.state() && (p.Err == nil || p.Required != required) {
				t.Errorf("the places are told as %+v", p)
			}
		}
		if amiss != 1 {
			t.Errorf("%d places are amiss, want one", amiss)
		}
	}
}
