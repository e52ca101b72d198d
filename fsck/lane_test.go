package fsck

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"testing"
)

func numbers(n int, fail error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i := range n {
			if !yield(strconv.Itoa(i), nil) {
				return
			}
		}
		if fail != nil {
			yield("", fail)
		}
	}
}

func self(s string) string { return s }

// I6: rows and entries go in step; a row without an entry is told once, an entry
// without a row takes none, and what is looked at meanwhile is bounded.
func TestLane(t *testing.T) {
	l, stop := open(numbers(ahead+10, nil), self, func(err error) error { return err })
	defer stop()
	for _, tt := range []struct {
		id     string
		before []string
		ok     bool
	}{
		{"0", nil, true},
		{"3", []string{"1", "2"}, true},
		{"2", nil, false}, // it was passed
		{"none", nil, false},
		{"4", nil, true},
		{strconv.Itoa(ahead + 5), nil, false}, // out of reach
	} {
		row, before, ok := l.take(tt.id)
		if ok != tt.ok || ok && row != tt.id || !slices.Equal(before, tt.before) {
			t.Errorf("take(%s) = %q behind %v, %v", tt.id, row, before, ok)
		}
	}
	if n := len(l.rows); n != ahead {
		t.Errorf("%d rows are held, want %d", n, ahead)
	}
	if rest := slices.Collect(l.rest()); len(rest) != ahead+5 || rest[0] != "5" {
		t.Errorf("%d rows are left", len(rest))
	}
	if l.count != ahead+10 {
		t.Errorf("%d rows were counted", l.count)
	}
}

// A row that is damaged is told and passed over; what cannot be read ends it.
func TestLaneFails(t *testing.T) {
	broken := errors.New("broken")
	for name, fault := range map[string]func(error) error{"told": func(error) error { return nil }, "fatal": func(err error) error { return err }} {
		l, stop := open(numbers(2, broken), self, fault)
		if _, _, ok := l.take("none"); ok || l.count != 3 {
			t.Errorf("%s: %d rows were read, want 3", name, l.count)
		}
		if want := fault(broken); l.err != want {
			t.Errorf("%s: the error is %v, want %v", name, l.err, want)
		}
		stop()
	}
}
