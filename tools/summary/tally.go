package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// An event is one line of "go test -json" (see "go doc test2json").
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build's output
	Test       string // empty: it is about the package
	Output     string
}

// name is the test's, with its package.
type name struct{ pkg, test string }

// A tally is what was seen so far. What a test wrote is kept until it is known
// how the test ended.
type tally struct {
	out     flusher
	wrote   map[name]*strings.Builder
	passed  int
	failed  int
	skipped map[name]string // to the reason
	broken  bool            // a package failed, or its build did
}

// A flusher is a writer that somebody watches.
type flusher interface {
	io.Writer
	Flush() error
}

func newTally(out flusher) *tally {
	return &tally{out: out, wrote: map[name]*strings.Builder{}, skipped: map[name]string{}}
}

// read takes events until r ends. A line that is no event is printed as it is:
// the go command writes some of its complaints so.
func (t *tally) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) line(line []byte) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
		t.print(string(line))
		return
	}
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		t.print(e.Output)
	case "build-fail":
		t.broken = true
	case "output":
		t.keep(n, e.Output)
	case "pass":
		if e.Test == "" {
			t.printOnly(n, "ok ")
		} else {
			t.passed++
		}
		delete(t.wrote, n)
	case "skip":
		if e.Test != "" {
			t.skipped[n] = t.reason(n)
		}
		delete(t.wrote, n)
	case "fail":
		if e.Test == "" {
			t.broken = true
		} else {
			t.failed++
		}
		t.printAll(n)
	}
}

func (t *tally) keep(n name, s string) {
	if t.wrote[n] == nil {
		t.wrote[n] = new(strings.Builder)
	}
	t.wrote[n].WriteString(s)
}

// reason returns what a test said before it skipped itself.
func (t *tally) reason(n name) string {
	if t.wrote[n] == nil {
		return ""
	}
	var last string
	for line := range strings.Lines(t.wrote[n].String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			last = line
		}
	}
	return last
}

// printOnly prints the lines of what n wrote that start with prefix.
func (t *tally) printOnly(n name, prefix string) {
	if t.wrote[n] == nil {
		return
	}
	for line := range strings.Lines(t.wrote[n].String()) {
		if strings.HasPrefix(line, prefix) {
			t.print(line)
		}
	}
}

// printAll prints what n wrote, without the marks of its start and its pauses.
func (t *tally) printAll(n name) {
	if t.wrote[n] == nil {
		return
	}
	for line := range strings.Lines(t.wrote[n].String()) {
		if !strings.HasPrefix(line, "=== ") {
			t.print(line)
		}
	}
	delete(t.wrote, n)
}

// print writes at once. A failure to write shows when main flushes for good.
func (t *tally) print(s string) {
	io.WriteString(t.out, s)
	t.out.Flush()
}

// close prints what is left and the tally, and reports whether all is well.
func (t *tally) close() bool {
	left := slices.SortedFunc(maps.Keys(t.wrote), compare)
	for _, n := range left { // the tests that never ended
		if t.broken && n.test != "" {
			t.printAll(n)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(t.skipped), compare) {
		t.print(fmt.Sprintf("skipped %s %s: %s\n", n.pkg, n.test, t.skipped[n]))
	}
	t.print(fmt.Sprintf("tests: %d ok, %d not, %d left out\n", t.passed, t.failed, len(t.skipped)))
	if t.passed+t.failed == 0 {
		t.print("no test ran\n")
		return false
	}
	return t.failed == 0 && !t.broken
}

// skipList returns the skipped tests, one a line, sorted bytewise, as comm
// wants them.
func (t *tally) skipList() []byte {
	var lines []string
	for n := range t.skipped {
		lines = append(lines, n.pkg+" "+n.test+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func compare(a, b name) int {
	if c := strings.Compare(a.pkg, b.pkg); c != 0 {
		return c
	}
	return strings.Compare(a.test, b.test)
}
