package audit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// What [Log.Count] keeps in memory.
const (
	CountWindow = 30 * time.Second // how long entries alike are counted before the count is written
	CountKinds  = 64               // how many kinds are counted at once; another one displaces the oldest
)

// A Tally keeps what a [Log] has counted and not written yet where the end of
// the process does not take it away. It has [CountKinds] places.
type Tally interface {
	// Keep keeps at place that entry, a leaf without a place in a history, stands
	// for count entries. With a count of zero the place is free.
	Keep(place int, entry []byte, count uint64) error
}

// KeepCounts has l keep its counts in t. It is called before the first Count.
func (l *Log) KeepCounts(t Tally) { l.floods.tally = t }

// Count writes e, which may come in a flood. The first of those that are alike
// is written at once, as Append does. Those that follow are counted, and the
// count is written as one entry after [CountWindow], when too many other kinds
// come, or by [Log.Flush]: with the facts of the last of them, no run, and the
// fact "since". None is dropped: where a count cannot be written, Count fails
// until it can.
//
// What was counted and not written is lost with the process, unless a [Tally]
// keeps it: at most one window of entries alike to one that stands in the log.
//
// # Errors
//
// As those of Append.
func (l *Log) Count(ctx context.Context, e Entry, alike string) error {
	for {
		f, oldest := l.floods.of(alike)
		if f == nil {
			if err := l.settle(ctx, oldest, true); err != nil {
				return err
			}
			continue
		}
		if counted, err := l.countOn(ctx, f, e); counted {
			return err
		}
	}
}

// Flush writes what was counted. A log that is flushed can be used on.
func (l *Log) Flush(ctx context.Context) error {
	var errs []error
	for _, f := range l.floods.all() {
		errs = append(errs, l.settle(ctx, f, true))
	}
	return errors.Join(errs...)
}

// floods are the kinds of entries that are counted just now.
type floods struct {
	tally Tally
	mu    sync.Mutex
	kinds map[string]*flood
	free  []int // places in the tally
}

// A flood is one kind. Its lock is held while something of it is written, so
// that each entry is counted before the count is written or after, and once.
type flood struct {
	alike string
	place int
	begun time.Time // guarded by floods.mu

	mu    sync.Mutex
	gone  bool
	first bool // the first entry is written
	next  Entry
	timer *time.Timer
	fails error // of the last attempt to write the count
}

// of returns the flood of that kind; where there is no room for it, the oldest
// one, which must go first.
func (s *floods) of(alike string) (f, oldest *flood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.kinds[alike]; f != nil {
		return f, nil
	}
	if s.kinds == nil {
		s.kinds = map[string]*flood{}
		for place := range CountKinds {
			s.free = append(s.free, place)
		}
	}
	if len(s.free) == 0 {
		for _, f := range s.kinds {
			if oldest == nil || f.begun.Before(oldest.begun) {
				oldest = f
			}
		}
		return nil, oldest
	}
	f = &flood{alike: alike, place: s.free[0], begun: time.Now()}
	s.free = s.free[1:]
	s.kinds[alike] = f
	return f, nil
}

func (s *floods) all() []*flood {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*flood
	for _, f := range s.kinds {
		all = append(all, f)
	}
	return all
}

// forget ends f, whose lock is held.
func (s *floods) forget(f *flood) {
	f.gone = true
	if f.timer != nil {
		f.timer.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, f.alike)
	s.free = append(s.free, f.place)
}

// countOn writes e as the first of f, or counts it. It reports false where f
// has ended.
func (l *Log) countOn(ctx context.Context, f *flood, e Entry) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return false, nil
	}
	if !f.first {
		if _, err := l.Append(ctx, e); err != nil {
			l.floods.forget(f)
			return true, err
		}
		f.first = true
		f.timer = time.AfterFunc(CountWindow, func() { _ = l.settle(context.Background(), f, false) })
		return true, nil
	}
	if f.fails != nil {
		if err := l.write(ctx, f); err != nil {
			return true, err
		}
	}
	e, err := l.complete(f.add(e))
	if err != nil {
		return true, err
	}
	f.next = e
	if t := l.floods.tally; t != nil {
		if err := t.Keep(f.place, encode(e, Link{Seq: 1}), e.Count); err != nil {
			return true, l.write(ctx, f) // what cannot be kept is not left waiting
		}
	}
	return true, nil
}

// add returns the entry that stands for those counted and e. It keeps its id,
// by which a count that was written is known from one that was not.
func (f *flood) add(e Entry) Entry {
	since := time.Now().UTC().Format(time.RFC3339Nano)
	if f.next.Count > 0 {
		since = f.next.Fact("since")
	}
	facts := []string{"since", since}
	for _, fact := range e.Facts {
		facts = append(facts, fact.Name, fact.Value)
	}
	e.ID, e.Time, e.Run, e.Facts = f.next.ID, time.Time{}, "", Facts(facts...)
	e.Count = f.next.Count + max(e.Count, 1)
	return e
}

// settle writes the count of f. It ends f when last says so or nothing came in
// the last window; else f counts on. What could not be written stays counted.
func (l *Log) settle(ctx context.Context, f *flood, last bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return nil
	}
	quiet := f.next.Count == 0
	err := l.write(ctx, f)
	if err == nil && (last || quiet) {
		l.floods.forget(f)
	} else if f.timer != nil {
		f.timer.Reset(CountWindow)
	}
	return err
}

func (l *Log) write(ctx context.Context, f *flood) error {
	if f.next.Count == 0 {
		return nil
	}
	e := f.next
	e.Time = time.Now()
	if _, f.fails = l.Append(ctx, e); f.fails != nil {
		return f.fails
	}
	f.next = Entry{}
	if t := l.floods.tally; t != nil {
		_ = t.Keep(f.place, nil, 0) // else its id tells that it was written
	}
	return nil
}

// Counted reads what a [Tally] kept.
func Counted(entry []byte, count uint64) (Entry, error) {
	e, _, err := Decode(entry)
	e.Count = count
	return e, err
}
