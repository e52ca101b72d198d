package id

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var form = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// RFC 9562: version 7, variant 10, and the milliseconds in front.
func TestForm(t *testing.T) {
	before := time.Now().UnixMilli()
	id := New()
	if !form.MatchString(id) {
		t.Fatalf("%q is no UUIDv7", id)
	}
	ms, err := strconv.ParseInt(strings.ReplaceAll(id[:13], "-", ""), 16, 64)
	if after := time.Now().UnixMilli(); err != nil || ms < before || ms > after {
		t.Errorf("its time is %d, want one from %d to %d (%v)", ms, before, after, err)
	}
}

// Ids of one process rise strictly, also those of one instant: lists are
// ordered by them. In a bubble the clock stands still.
func TestRising(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 10000 { // more than the 4,096 ticks of a millisecond
			if i == 5000 {
				time.Sleep(time.Millisecond)
			}
			ids = append(ids, New())
		}
		for i, id := range ids {
			if !form.MatchString(id) || i > 0 && id <= ids[i-1] {
				t.Fatalf("%d: %s comes after %s", i, id, ids[i-1])
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var ids []string
			for range 1000 {
				ids = append(ids, New())
			}
			if !slices.IsSorted(ids) {
				t.Error("one goroutine's ids do not rise")
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ids...)
		})
	}
	wg.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8000 {
		t.Errorf("%d different ids, want 8000", n)
	}
}

func TestValid(t *testing.T) {
	id := New()
	if !Valid(id) {
		t.Errorf("%q is not valid", id)
	}
	for _, s := range []string{
		"", "x", strings.ToUpper(id), id + "0", id[:35], " " + id[1:], strings.ReplaceAll(id, "-", "0"), id[:14] + "4" + id[15:], id[:19] + "c" + id[20:],
		id[:35] + "g", id[:35] + "\n", "{" + id[1:35] + "}", strings.Repeat("é", 18),
	} {
		if Valid(s) {
			t.Errorf("%q is valid", s)
		}
	}
}

// The random part tells nothing: ids of one instant share no byte of it for long.
func TestRandom(t *testing.T) {
	tails := map[string]bool{}
	for range 1000 {
		tails[New()[19:]] = true
	}
	if len(tails) != 1000 {
		t.Errorf("%d different tails of 1000", len(tails))
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New()
	}
}
