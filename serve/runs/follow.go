package runs

import (
	"context"
	"fmt"
	"io"

	"github.com/tracon-go/tracon/slot"
)

// A Follower reads the events of one run. Its methods are not safe for
// concurrent use. Close it.
type Follower struct {
	runs  *Runs
	run   *run
	next  uint64 // the Seq of the event that it wants
	saw   int64  // bytes of output before that; below zero: not known
	over  bool   // the last event was read
	close func()
}

// Follow returns a follower of the tenant's run that begins after the event with
// the number after; zero means with the first that is still held, and so does a
// number that the run has not come to. The End comes again, also after itself.
//
// # Errors
//
// ErrNotFound. A *slot.BusyError where too many follow already.
func (r *Runs) Follow(tenant, id string, after uint64) (*Follower, error) {
	n, err := r.find(tenant, id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.share(tenant)
	if r.followers >= r.limits.Followers || s.followers >= r.limits.FollowersPerTenant {
		r.release(tenant)
		return nil, fmt.Errorf("runs: too many follow runs: %w", &slot.BusyError{RetryAfter: busyAfter})
	}
	r.followers++
	s.followers++
	f := &Follower{runs: r, run: n, next: 1}
	if after > 0 {
		f.next, f.saw = n.feed.after(after)
	}
	f.close = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.followers--
		s.followers--
		r.release(tenant)
	}
	return f, nil
}

// after returns the number of the event after that with the number seq, and how
// much output comes before it, where that is known.
func (f *feed) after(seq uint64) (next uint64, saw int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.first + uint64(len(f.events))
	switch {
	case seq >= end:
		return 1, 0
	case f.ended && seq+1 == end: // the end comes again: whoever follows reads it
		seq--
	case seq+1 < f.first:
		return seq + 1, -1
	}
	saw = f.cut
	for _, e := range f.events[:seq+1-f.first] {
		saw += int64(len(e.Text)) + e.Lost
	}
	return seq + 1, saw
}

// Next returns the next event, waiting for it. A follower that was too slow gets
// a Gap for what it missed: it alone does. After the End it returns io.EOF.
//
// # Errors
//
// The cause of ctx when that is done first; it may be called again.
func (f *Follower) Next(ctx context.Context) (Event, error) {
	for !f.over {
		e, ok, changed := f.read()
		if ok {
			return e, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
	return Event{}, io.EOF
}

// read returns the event that the follower wants, or what tells of the next.
func (f *Follower) read() (e Event, ok bool, changed <-chan struct{}) {
	feed := f.run.feed
	feed.mu.Lock()
	defer feed.mu.Unlock()
	switch {
	case f.next < feed.first:
		e = Event{Seq: feed.first - 1, Kind: Gap}
		if f.saw >= 0 {
			e.Lost = feed.cut - f.saw
		}
		f.next, f.saw = feed.first, feed.cut
		return e, true, nil
	case f.next < feed.first+uint64(len(feed.events)):
		e = feed.events[f.next-feed.first]
		f.next++
		if f.saw >= 0 {
			f.saw += int64(len(e.Text)) + e.Lost
		}
		f.over = e.Kind == End
		return e, true, nil
	}
	return Event{}, false, feed.changed
}

// View returns what is known of the run now.
func (f *Follower) View() View { return f.run.view() }

// Close ends the following. It may be called again.
func (f *Follower) Close() {
	f.close()
	f.close = func() {}
}
