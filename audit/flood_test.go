package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/audit"
)

func refusal(subject string) audit.Entry {
	return audit.Entry{Tenant: "t", Actor: "model", Kind: audit.Refusal, Subject: subject, Run: "r", Facts: audit.Facts("gate", "grant")}
}

// count calls Count n times for one kind.
func count(t *testing.T, log *audit.Log, subject string, n int) {
	t.Helper()
	for range n {
		if err := log.Count(t.Context(), refusal(subject), subject); err != nil {
			t.Fatal(err)
		}
	}
}

// counts tells the log's entries as "subject×count", in their order.
func counts(t *testing.T, log *audit.Log) string {
	t.Helper()
	var got []string
	for leaf, err := range log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s×%d", leaf.Entry.Subject, leaf.Entry.Count))
	}
	return strings.Join(got, " ")
}

// Case 61: the first of a flood is written at once, the others as one counted
// entry at the end of each window, at Flush, or when too many other kinds come.
func TestCount(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, log *audit.Log)
		want string
	}{
		{"one", func(t *testing.T, log *audit.Log) { count(t, log, "a", 1) }, "a×1"},
		{"one, and its window passes", func(t *testing.T, log *audit.Log) { count(t, log, "a", 1); time.Sleep(10 * audit.CountWindow) }, "a×1"},
		{"within the window", func(t *testing.T, log *audit.Log) { count(t, log, "a", 1000); time.Sleep(audit.CountWindow - 1) }, "a×1"},
		{"the window passes", func(t *testing.T, log *audit.Log) { count(t, log, "a", 1000); time.Sleep(audit.CountWindow + 1) }, "a×1 a×999"},
		{"a flood goes on", func(t *testing.T, log *audit.Log) {
			for range 4 {
				count(t, log, "a", 100)
				time.Sleep(audit.CountWindow + 1)
			}
		}, "a×1 a×99 a×100 a×100 a×100"},
		{"a flood that ended begins anew", func(t *testing.T, log *audit.Log) {
			count(t, log, "a", 3)
			time.Sleep(3 * audit.CountWindow)
			count(t, log, "a", 1)
		}, "a×1 a×2 a×1"},
		{"Flush", func(t *testing.T, log *audit.Log) {
			count(t, log, "a", 5)
			if err := log.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(3 * audit.CountWindow)
		}, "a×1 a×4"},
		{"two kinds", func(t *testing.T, log *audit.Log) {
			count(t, log, "a", 2)
			time.Sleep(time.Second)
			count(t, log, "b", 3)
			time.Sleep(audit.CountWindow + 1)
		}, "a×1 b×1 a×1 b×2"},
		{"the oldest kind gives way", func(t *testing.T, log *audit.Log) {
			count(t, log, "a", 7)
			time.Sleep(time.Second)
			for i := range audit.CountKinds {
				count(t, log, fmt.Sprint(i), 1)
			}
			count(t, log, "a", 1) // anew
		}, "a×1 0×1 1×1 2×1 3×1 4×1 5×1 6×1 7×1 8×1 9×1 10×1 11×1 12×1 13×1 14×1 15×1 16×1 17×1 18×1 19×1 20×1 21×1 22×1 23×1 24×1 25×1 26×1 " +
			"27×1 28×1 29×1 30×1 31×1 32×1 33×1 34×1 35×1 36×1 37×1 38×1 39×1 40×1 41×1 42×1 43×1 44×1 45×1 46×1 47×1 48×1 49×1 50×1 51×1 52×1 " +
			"53×1 54×1 55×1 56×1 57×1 58×1 59×1 60×1 61×1 62×1 a×6 63×1 a×1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, log := written(t, 0)
				tt.do(t, log)
				synctest.Wait()
				if got := counts(t, log); got != tt.want {
					t.Errorf("the log is\n%s\nwant\n%s", got, tt.want)
				}
				if _, err := log.Verify(t.Context(), nil); err != nil {
					t.Error(err)
				}
				time.Sleep(3 * audit.CountWindow) // the timers end
			})
		})
	}
}

// A counted entry says since when, and what the last of them said.
func TestCountedEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := written(t, 0)
		count(t, log, "a", 1)
		time.Sleep(time.Second)
		since := time.Now().UTC().Format(time.RFC3339Nano)
		count(t, log, "a", 1)
		time.Sleep(time.Second)
		e := refusal("a")
		e.Facts = audit.Facts("gate", "grant", "reason", "the last")
		if err := log.Count(t.Context(), e, "a"); err != nil {
			t.Fatal(err)
		}
		if err := log.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for leaf, err := range log.Entries(t.Context(), "t", 1) {
			got := leaf.Entry
			if err != nil || got.Count != 2 || got.Run != "" || got.Fact("since") != since || got.Fact("reason") != "the last" || got.Fact("gate") != "grant" {
				t.Errorf("got %+v, %v", got, err)
			}
		}
	})
}

// R16, case 57: a count that cannot be written is kept, and nothing more is
// counted until it is written.
func TestCountFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		sink, log := written(t, 0)
		fail := func(err error) { sink.mu.Lock(); defer sink.mu.Unlock(); sink.err = err }
		fail(full)
		if err := log.Count(t.Context(), refusal("a"), "a"); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, full) {
			t.Errorf("the first: got %v, want ErrUnavailable", err)
		}
		fail(nil)
		count(t, log, "a", 3)
		fail(full)
		time.Sleep(audit.CountWindow + 1)
		if err := log.Count(t.Context(), refusal("a"), "a"); !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("after a count could not be written: got %v, want ErrUnavailable", err)
		}
		if err := log.Flush(t.Context()); !errors.Is(err, full) {
			t.Errorf("Flush: got %v, want the store's error", err)
		}
		for i := range audit.CountKinds - 1 {
			fail(nil)
			count(t, log, fmt.Sprint(i), 1)
		}
		fail(full)
		if err := log.Count(t.Context(), refusal("z"), "z"); !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("a kind for which another's count must be written first: got %v, want ErrUnavailable", err)
		}
		fail(nil)
		if err := log.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := counts(t, log); !strings.HasPrefix(got, "a×1 0×1") || !strings.HasSuffix(got, "62×1 a×2") {
			t.Errorf("the log is %s", got)
		}
	})
}

// Many goroutines: each refusal stands in the log, once.
func TestCountConcurrently(t *testing.T) {
	sink, log := written(t, 0)
	tally := &tally{}
	log.KeepCounts(tally)
	const callers, each = 8, 500
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				kind := fmt.Sprint((c*7 + i) % (manyKinds))
				if err := log.Count(context.Background(), refusal(kind), kind); err != nil {
					t.Error(err)
				}
				if i%100 == 0 {
					if err := log.Flush(context.Background()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var total uint64
	for _, row := range sink.rows {
		e, _, err := audit.Decode(row.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		total += e.Count
	}
	if total != callers*each {
		t.Errorf("the log has %d refusals, want %d", total, callers*each)
	}
	if len(tally.kept) != 0 {
		t.Errorf("the tally keeps %d counts after Flush", len(tally.kept))
	}
}

// manyKinds are some more than fit.
const manyKinds = audit.CountKinds + 9

// tally is a Tally in memory.
type tally struct {
	mu   sync.Mutex
	kept map[int]audit.Entry
	err  error
}

func (y *tally) Keep(place int, entry []byte, n uint64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.err != nil {
		return y.err
	}
	if n == 0 {
		delete(y.kept, place)
		return nil
	}
	e, err := audit.Counted(entry, n)
	if y.kept == nil {
		y.kept = map[int]audit.Entry{}
	}
	y.kept[place] = e
	return err
}

// "Never dropped": at each moment, what is counted and not written is in the
// tally, under the id that it will have in the log.
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, log := written(t, 0)
		y := &tally{}
		log.KeepCounts(y)
		count(t, log, "a", 1)
		if len(y.kept) != 0 {
			t.Errorf("the first is in the log and in the tally: %v", y.kept)
		}
		count(t, log, "a", 4)
		count(t, log, "b", 2)
		if len(y.kept) != 2 || y.kept[0].Count != 4 || y.kept[1].Count != 1 || y.kept[0].Subject != "a" {
			t.Fatalf("the tally keeps %v", y.kept)
		}
		id := y.kept[0].ID
		if err := log.Flush(t.Context()); err != nil || len(y.kept) != 0 {
			t.Errorf("after Flush: %v, and it keeps %v", err, y.kept)
		}
		found := false
		for _, row := range sink.rows {
			e, _, _ := audit.Decode(row.Bytes)
			found = found || e.ID == id && e.Count == 4
		}
		if !found {
			t.Errorf("no entry has the id %s that the tally kept", id)
		}
		// What cannot be kept is written at once.
		count(t, log, "c", 1)
		y.err = errors.New("disk full")
		count(t, log, "c", 3)
		if got := counts(t, log); !strings.HasSuffix(got, "c×1 c×1 c×1 c×1") {
			t.Errorf("with a tally that fails the log is %s", got)
		}
	})
}
