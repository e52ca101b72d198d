package handover_test

import (
	"errors"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/internal/handover"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// followed is a request of 8 bytes of each stream, and what whoever follows it sees.
func followed(t testing.TB, chunks int) (executor.Request, *gate.Live) {
	t.Helper()
	live := gate.NewLive(chunks)
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Name: "sh-1"}}).Admit(t.Context(), executortest.Order{
		Files: []bundle.File{{Path: "main.sh", Data: []byte("cat\n")}}, Script: "main.sh", Mode: gate.None, Policy: gate.Policy{MaxOutput: 8}, Live: live})
	if err != nil {
		t.Fatal(err)
	}
	return req, live
}

func seen(live *gate.Live) (stdout, stderr string) {
	live.Close()
	for c := range live.Chunks() {
		if c.Stream == gate.Stdout {
			stdout += string(c.Data)
		} else {
			stderr += string(c.Data)
		}
	}
	return stdout, stderr
}

// M01, M02, R19: what a runner shows is of this run, in its order and within the request's
// bounds, or nothing of it is seen; what is missing is counted, and a follower who takes
// nothing holds nobody.
func TestShow(t *testing.T) {
	const out, err = wire.Stdout, wire.Stderr
	type piece struct {
		of     string // empty: this run
		stream string
		offset int64
		data   string
	}
	for _, tt := range []struct {
		name           string
		pieces         []piece
		last           bool // the last one is taken
		stdout, stderr string
		lost           int64
	}{
		{"both streams", []piece{{"", out, 0, "ab"}, {"", err, 2, "\xff"}, {"", out, 3, "c"}}, true, "abc", "\xff", 0},
		{"all that was asked for", []piece{{"", out, 0, "12345678"}, {"", err, 8, "12345678"}}, true, "12345678", "12345678", 0},
		{"a piece is missing: what comes next may be the end of a secret", []piece{{"", out, 0, "ab"}, {"", out, 5, "f"}}, true, "ab", "", 4},
		{"the end is missing", []piece{{"", out, 0, "ab"}, {"", out, 9, ""}}, true, "ab", "", 7},
		{"another run's", []piece{{"another", out, 0, "ab"}}, false, "", "", 0},
		{"more than was asked for", []piece{{"", out, 0, "1234"}, {"", out, 4, "56789"}}, false, "1234", "", 0},
		{"the same again", []piece{{"", out, 0, "ab"}, {"", out, 0, "ab"}}, false, "ab", "", 0},
		{"nothing", []piece{{"", out, 0, ""}}, false, "", "", 0},
		{"out of order", []piece{{"", out, 4, "ef"}, {"", out, 0, "abcd"}}, false, "", "", 6},
		{"a stream that is none", []piece{{"", "stdin", 0, "ab"}}, false, "", "", 0},
		{"an offset below zero", []piece{{"", out, -1, "ab"}}, false, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, live := followed(t, 0)
			s := handover.NewShow(req)
			for i, p := range tt.pieces {
				if p.of == "" {
					p.of = req.ID()
				}
				e := s.Take(wire.Output{ID: p.of, Stream: p.stream, Offset: p.offset, Data: []byte(p.data)})
				if want := i < len(tt.pieces)-1 || tt.last; want != (e == nil) || !want && !errors.Is(e, handover.ErrShown) {
					t.Errorf("piece %d: got %v, taken: want %t", i, e, want)
				}
			}
			lost := live.Dropped()
			if stdout, stderr := seen(live); stdout != tt.stdout || stderr != tt.stderr || lost != tt.lost {
				t.Errorf("got %q, %q, %d lost; want %q, %q, %d", stdout, stderr, lost, tt.stdout, tt.stderr, tt.lost)
			}
		})
	}

	req, live := followed(t, 1)
	s := handover.NewShow(req)
	for i := range wire.MaxPieces + 1 {
		o := wire.Output{ID: req.ID(), Stream: out, Offset: int64(i), Data: []byte("x")}
		if i >= 8 {
			o.Offset, o.Data = o.Offset+1, nil // of more there is nothing but that it was lost
		}
		err := s.Take(o)
		if (err == nil) != (i < wire.MaxPieces) {
			t.Fatalf("M02: piece %d: %v", i, err)
		}
	}
	if stdout, _ := seen(live); stdout != "x" || live.Dropped() != wire.MaxPieces-1 {
		t.Errorf("B10: a follower who takes nothing has %q, and %d bytes are told as lost", stdout, live.Dropped())
	}
	nobody := admitted(t, gate.Interpreter{Name: "sh-1"}, "x")
	if err := handover.NewShow(nobody).Take(wire.Output{ID: nobody.ID(), Stream: out, Data: []byte("x")}); err != nil || handover.Wanted(nobody) || !handover.Wanted(req) {
		t.Errorf("nobody follows: %v", err)
	}
}
