//go:build linux && amd64

package microvm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// pause lets others work, without a time of its own.
func pause() { time.Sleep(time.Millisecond) }

// A word is a frame that a machine says.
type word struct {
	t frame.Type
	b []byte
}

// hears returns the host's end of a port at which a machine says these words and is gone
// then. What the host says is thrown away.
func hears(t *testing.T, words ...word) talk {
	t.Helper()
	ours, theirs, err := newTalk()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for _, w := range words {
		if err := frame.Write(&said, w.t, w.b); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(theirs, &said)
		_ = unix.Shutdown(int(theirs.Fd()), unix.SHUT_WR)
		_, _ = io.Copy(io.Discard, theirs)
		theirs.Close()
	}()
	t.Cleanup(func() {
		ours.Close()
		<-over
	})
	return talk{ours, bufio.NewReader(ours)}
}

// M01, M02: what a machine says in another order than its run has, or more than it may,
// is believed in no part.
func TestHostileMachine(t *testing.T) {
	end := word{frame.Ended, frame.End{Code: 3}.Bytes()}
	out := word{frame.Stdout, []byte("x")}
	started := func(k talk) error { return k.started() }
	follow := func(k talk) error { _, err := k.follow(io.Discard, io.Discard); return err }
	listing := func(k talk) error { _, err := k.listing(); return err }
	fetch := func(k talk) error {
		b, err := k.fetch(frame.Roots, 3)
		if err == nil && len(b) > 3 {
			err = fmt.Errorf("got %d bytes", len(b))
		}
		return err
	}
	entry := word{frame.Listing, frame.Entry{Name: "a", Kind: frame.Regular}.Append(nil)}
	for _, c := range []struct {
		name  string
		when  func(talk) error
		words []word
		err   error // nil: none
	}{
		{"a start", started, []word{{frame.Started, nil}}, nil},
		{"output before the start", started, []word{out}, frame.ErrFrame},
		{"an ending before the start", started, []word{end}, frame.ErrFrame},
		{"a greeting again", started, []word{{frame.Hello, []byte(frame.Greeting)}}, frame.ErrFrame},
		{"a failure of no step", started, []word{{frame.Failed, make([]byte, 5)}}, frame.ErrFrame},
		{"gone before the start", started, nil, io.EOF},
		{"output and an ending", follow, []word{out, {frame.Stderr, []byte("y")}, end}, nil},
		{"a list before the ending", follow, []word{entry}, frame.ErrFrame},
		{"a second start", follow, []word{{frame.Started, nil}}, frame.ErrFrame},
		{"an ending with two ways", follow, []word{{frame.Ended, []byte{9, 1, 0, 0, 0, 0, 0}}}, frame.ErrFrame},
		{"gone without an ending", follow, []word{out}, io.EOF},
		{"a list", listing, []word{entry, {frame.Listed, nil}}, nil},
		{"a list with a name twice", listing, []word{entry, entry, {frame.Listed, nil}}, frame.ErrFrame},
		{"output behind the ending", listing, []word{out}, frame.ErrFrame},
		{"a second ending", listing, []word{end}, frame.ErrFrame},
		{"a file", fetch, []word{{frame.Content, []byte("abc")}, {frame.Whole, nil}}, nil},
		{"more of a file than was asked for", fetch, []word{{frame.Content, []byte("ab")}, {frame.Content, []byte("cd")}, {frame.Whole, nil}}, frame.ErrFrame},
		{"a file that is a list", fetch, []word{entry}, frame.ErrFrame},
		{"gone within a file", fetch, []word{{frame.Content, []byte("ab")}}, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.when(hears(t, c.words...))
			if c.err == nil && err != nil || c.err != nil && !errors.Is(err, c.err) && !(c.err == io.EOF && isGone(err)) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
	var f *failed
	if err := hears(t, word{frame.Failed, frame.Failure{Step: frame.Start, Errno: 2}.Bytes()}).started(); !errors.As(err, &f) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a failure: %v", err)
	}
}

// R22: a machine that says nothing is waited for no longer than until the deadline.
func TestSilentMachine(t *testing.T) {
	ours, theirs, err := newTalk()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	k := talk{ours, bufio.NewReader(ours)}
	ctx, cancel := context.WithCancel(t.Context())
	defer context.AfterFunc(ctx, func() { k.until(time.Now()) })()
	cancel()
	if err := k.started(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// B5, H01, H02: what a machine tells of its files is collected as what lies on this host
// is: links, second names and what is no file are named, and limits hold.
func TestLeft(t *testing.T) {
	skill, err := bundle.New([]bundle.File{{Path: "main.sh", Data: []byte("x")}}, []byte("{}"), bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	given, err := bundle.New([]bundle.File{{Path: "same", Data: []byte("old")}, {Path: "changed", Data: []byte("old")}, {Path: "gone", Data: []byte("old")}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{"same": "old", "changed": "new", "a": "A", "b": "B", "large": strings.Repeat("x", 100)}
	tree := frame.Tree{}
	add := func(e frame.Entry) {
		t.Helper()
		e.Size = uint64(len(content[e.Name]))
		if err := tree.Add(e.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	file := func(parent uint32, name string) frame.Entry {
		return frame.Entry{Parent: parent, Name: name, Kind: frame.Regular}
	}
	add(file(0, "beside"))
	add(file(1, "changed"))
	add(file(1, "same"))
	add(frame.Entry{Parent: 2, Name: "dir", Kind: frame.Folder})                  // number 6
	add(frame.Entry{Parent: 2, Name: "locked", Kind: frame.Folder, Closed: true}) // 7
	add(file(6, "a"))
	add(frame.Entry{Parent: 6, Name: "fifo", Kind: frame.Other})
	add(file(6, "large"))
	add(frame.Entry{Parent: 6, Name: "link", Kind: frame.Link})
	add(frame.Entry{Parent: 6, Name: "twice", Kind: frame.Regular, Twice: true})
	add(file(2, "zb"))
	content["zb"] = ""
	fetched := map[string]bool{}
	fetch := func(number uint32, most uint64) ([]byte, error) {
		name := tree.Entries[number-frame.Roots].Name
		fetched[name] = true
		return []byte(content[name])[:min(uint64(len(content[name])), most)], nil
	}
	files, notes := box.AdoptNodes(newLeft(tree, fetch), skill, given, laid, "outputs/").Collect(box.Harvest{Bytes: 50, Files: 10})
	got := map[string]string{}
	for _, f := range files {
		got[f.Path] = string(f.Data)
	}
	if len(got) != 3 || got["dir/a"] != "A" || got["inputs/changed"] != "new" || got["zb"] != "" {
		t.Errorf("got %q", got)
	}
	told := strings.Join(notes, "\n")
	for _, want := range []string{"outputs/dir/fifo was not", "outputs/dir/large was not", "outputs/dir/link was not", "outputs/dir/twice was not", "outputs/locked", "inputs/gone", "beside"} {
		if !strings.Contains(told, want) {
			t.Errorf("no note tells of %q: %q", want, notes)
		}
	}
	if fetched["large"] || fetched["beside"] || fetched["twice"] {
		t.Errorf("asked for %v: what is not wanted is not asked for", fetched)
	}
	failing := func(uint32, uint64) ([]byte, error) { return nil, executor.ErrUnknown }
	if files, _ := box.AdoptNodes(newLeft(tree, failing), skill, given, laid, "outputs/").Collect(box.Harvest{Bytes: 50, Files: 10}); len(files) != 0 {
		t.Errorf("of a machine that is gone: %q", files)
	}
}
