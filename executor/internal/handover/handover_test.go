package handover_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/internal/handover"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// admitted is a request through all gates: two files of output, matched by *.txt.
func admitted(t testing.TB, in gate.Interpreter, stdin string) executor.Request {
	t.Helper()
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": in}).Admit(t.Context(), executortest.Order{
		Files: []bundle.File{{Path: "main.sh", Data: []byte("cat\n")}, {Path: "data.bin", Data: bytes.Repeat([]byte{7}, 100)}}, Script: "main.sh", Mode: gate.Argv, Outputs: []string{"*.txt"},
		Inputs: []bundle.File{{Path: "in.txt", Data: []byte(stdin)}},
		Policy: gate.Policy{Timeout: time.Minute, MaxOutput: 8, MaxOutputs: 64, MaxOutputFiles: 2, RequireWalls: []string{"processes", "memory"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// good is an answer that holds.
func good(req executor.Request) wire.Answer {
	code := 3
	return wire.Answer{ExitCode: &code, StandardOutput: "out", StandardError: "err", More: &wire.AnswerMore{
		ID: req.ID(), Bundle: req.Digest().String(), Ending: wire.Ending{Kind: "exited", Code: 3},
		Walls: []wire.Wall{{Name: "memory", Stands: true}, {Name: "files"}, {Name: "processes", Stands: true}}}}
}

// M01, M02: what a runner answers is of this run, of this closure and within the
// request's bounds, or it is no result.
func TestHostileAnswers(t *testing.T) {
	req := admitted(t, gate.Interpreter{Name: "sh-1"}, "x")
	file := func(path string, size int) wire.File { return wire.File{Path: path, Data: make([]byte, size)} }
	cases := []struct {
		name   string
		change func(*wire.Answer)
		ok     bool
	}{
		{"nothing amiss", func(*wire.Answer) {}, true},
		{"case 39a: inputs that the script changed or added", func(a *wire.Answer) {
			a.More.Outputs = []wire.File{file("inputs/in.txt", 1), file("inputs/new.bin", 1)}
		}, true},
		{"a file above the inputs", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("inputs/../a.sh", 1)} }, false},
		{"no member of ours", func(a *wire.Answer) { a.More = nil }, false},
		{"no id", func(a *wire.Answer) { a.More.ID = "" }, false},
		{"another run", func(a *wire.Answer) { a.More.ID += "x" }, false},
		{"no closure", func(a *wire.Answer) { a.More.Bundle = "" }, false},
		{"another closure", func(a *wire.Answer) { a.More.Bundle = bundle.Sum(nil).String() }, false},
		{"no ending", func(a *wire.Answer) { a.More.Ending = wire.Ending{} }, false},
		{"an ending that is none", func(a *wire.Answer) { a.More.Ending.Kind = "succeeded" }, false},
		{"two endings", func(a *wire.Answer) { a.More.Ending.Kind = "timed_out" }, false},
		{"another code", func(a *wire.Answer) { *a.ExitCode = 0 }, false},
		{"more files than were asked for", func(a *wire.Answer) {
			a.More.Outputs = []wire.File{file("a.txt", 1), file("b.txt", 1), file("c.txt", 1)}
		}, false},
		{"files larger than were asked for", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("a.txt", 40), file("b.txt", 40)} }, false},
		{"a file twice", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("a.txt", 1), file("a.txt", 1)} }, false},
		{"two names that one file system takes for one", func(a *wire.Answer) {
			a.More.Outputs = []wire.File{file("a.txt", 1), file("A.txt", 1)}
		}, false},
		{"a file above the folder", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("b/../../a.txt", 1)} }, false},
		{"a file of the host", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("/etc/passwd", 1)} }, false},
		{"a path of another system", func(a *wire.Answer) { a.More.Outputs = []wire.File{file(`b\a.txt`, 1)} }, false},
		{"a file without a name", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("", 1)} }, false},
		{"a file that no pattern names, in a folder", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("b/a.txt", 1)} }, false},
		{"a file that no pattern names", func(a *wire.Answer) { a.More.Outputs = []wire.File{file("a.sh", 1)} }, false},
		{"M09: a wall that was asked for does not stand", func(a *wire.Answer) { a.More.Walls[2].Stands = false }, false},
		{"M09: a wall that was asked for is not told of", func(a *wire.Answer) { a.More.Walls = a.More.Walls[:2] }, false},
		{"M09: no walls", func(a *wire.Answer) { a.More.Walls = nil }, false},
		{"M09: a wall that stands, and does not", func(a *wire.Answer) { a.More.Walls = append(a.More.Walls, wire.Wall{Name: "memory"}) }, false},
		{"M01: a signal that a shell's code cannot tell", func(a *wire.Answer) { a.More.Ending = wire.Ending{Kind: "signaled", Signal: 128} }, false},
		{"a digest that is none", func(a *wire.Answer) { a.More.PostureDigest = "sha256:00" }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := good(req)
			c.change(&a)
			res, err := handover.Result(req, a)
			if c.ok {
				if err != nil || res.Ending != executor.Exited(3) || string(res.Stdout) != "out" || string(res.Stderr) != "err" || res.Truncated {
					t.Errorf("got %+v, %v", res, err)
				}
				return
			}
			if !errors.Is(err, handover.ErrAnswer) || errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
				t.Errorf("got %+v, %v, want ErrAnswer alone", res, err)
			}
		})
	}
}

// M02, O16: streams are cut to what was asked for, and that is told; notes are few, short
// and text, and each says whose words it is.
func TestCut(t *testing.T) {
	req := admitted(t, gate.Interpreter{Name: "sh-1"}, "x")
	a := good(req)
	a.StandardError = "123456789"
	for i := range 100 {
		a.More.Notes = append(a.More.Notes, fmt.Sprint(i, strings.Repeat("é", 2000)))
	}
	res, err := handover.Result(req, a)
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "out" || string(res.Stderr) != "12345678" || !res.Truncated {
		t.Errorf("got %q and %q, cut: %t", res.Stdout, res.Stderr, res.Truncated)
	}
	if len(res.Notes) != 8 {
		t.Errorf("got %d notes", len(res.Notes))
	}
	for _, n := range res.Notes {
		words, ok := strings.CutPrefix(n, "the runner says: ")
		if !ok || len(words) > 256 || strings.ToValidUTF8(n, "?") != n {
			t.Errorf("got a note of %d bytes, %.20q", len(n), n)
		}
	}
}

// Each ending has one word of the wire.
func TestEndings(t *testing.T) {
	req := admitted(t, gate.Interpreter{Name: "sh-1"}, "x")
	for _, c := range []struct {
		ending wire.Ending
		want   executor.Ending
	}{
		{wire.Ending{Kind: "exited", Code: 3}, executor.Exited(3)}, {wire.Ending{Kind: "signaled", Signal: 9}, executor.Signaled(9)},
		{wire.Ending{Kind: "timed_out"}, executor.Expired()}, {wire.Ending{Kind: "out_of_memory"}, executor.OutOfMemory()},
		{wire.Ending{Kind: "policy_violation"}, executor.PolicyViolation()}, {wire.Ending{Kind: "output_flood"}, executor.OutputFlood()},
	} {
		t.Run(c.ending.Kind, func(t *testing.T) {
			a := good(req)
			a.More.Ending = c.ending
			if a.TimedOut = c.ending.Kind == "timed_out"; a.TimedOut {
				a.ExitCode = nil
			}
			if res, err := handover.Result(req, a); err != nil || res.Ending != c.want {
				t.Errorf("got %v, %v, want %v", res.Ending, err, c.want)
			}
		})
	}
}

// R28, B1: the run says all that the gates fixed, and a closure travels within it where
// it is small; a path of this host is nothing that a runner may be asked for.
func TestRun(t *testing.T) {
	req := admitted(t, gate.Interpreter{Name: "sh-1"}, "in")
	_, size := req.Bundle().Size()
	for _, c := range []struct {
		name   string
		inline int
		files  int
	}{{"within", int(size), 2}, {"one byte too large", int(size) - 1, 0}, {"never", 0, 0}} {
		t.Run(c.name, func(t *testing.T) {
			run, err := handover.Run(req, c.inline)
			if err != nil {
				t.Fatal(err)
			}
			m := run.More
			if run.Tenant != req.Tenant() || run.Runtime != "sh-1" || run.SourceSHA256 != req.ScriptDigest().Hex() || run.TimeoutSeconds != 60 || run.MaxOutputBytes != 8 ||
				m.ID != req.ID() || m.Bundle != req.Digest().String() || m.MaxOutputsBytes != 64 || m.MaxOutputFiles != 2 || m.Tier != string(req.Standing().Tier) ||
				!slices.Equal(m.RequireWalls, []string{"memory", "processes"}) ||
				len(m.Inputs) != 1 || string(m.Inputs[0].Data) != "in" || m.Ticket != "" {
				t.Errorf("got %+v, %+v", run, m)
			}
			if len(m.Files) != c.files {
				t.Errorf("got %d files of the closure, want %d", len(m.Files), c.files)
			}
		})
	}
	if _, err := handover.Run(admitted(t, gate.Interpreter{Path: "/bin/sh"}, "x"), 0); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v for a path of this host, want ErrUnavailable", err)
	}
}

// M01, M02: whatever a runner says that is of the wire's form, a result of it is of this
// run and within its bounds.
func FuzzResult(f *testing.F) {
	req := admitted(f, gate.Interpreter{Name: "sh-1"}, "x")
	for _, change := range []func(*wire.Answer){
		func(*wire.Answer) {}, func(a *wire.Answer) { a.More = nil }, func(a *wire.Answer) { a.More.Notes = []string{"n"} },
		func(a *wire.Answer) { a.More.Outputs = []wire.File{{Path: "a.txt", Data: []byte("x")}} }, func(a *wire.Answer) { a.StandardOutput = "123456789" },
	} {
		a := good(req)
		change(&a)
		text, err := json.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := wire.ReadAnswer(bytes.NewReader(text), wire.MaxAnswer)
		if err != nil {
			return
		}
		if a.More != nil { // ids and digests are not what is guessed here
			a.More.ID, a.More.Bundle = req.ID(), req.Digest().String()
		}
		res, err := handover.Result(req, a)
		if err != nil {
			if !errors.Is(err, handover.ErrAnswer) {
				t.Errorf("got error %v, want ErrAnswer", err)
			}
			return
		}
		var bytes int64
		for _, o := range res.Outputs {
			bytes += int64(len(o.Data))
		}
		most, files := req.MaxOutputs()
		if a.More == nil || res.Ending.IsZero() || len(res.Stdout) > 8 || len(res.Stderr) > 8 || bytes > most || len(res.Outputs) > files || len(res.Notes) > 8 {
			t.Errorf("M02: got %+v", res)
		}
	})
}
