package tracon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/toolcall"
)

// A Dead is a host process that ended without writing what came of its calls.
type Dead struct {
	Instance string        // its id: [gate.Config].Instance; required
	From     uint64        // a size of the log from before it started; zero: the log is read from its beginning
	Counted  []audit.Entry // refusals that it had counted and perhaps not written
}

// Recover closes what a dead process left open: each admission without an
// ending ends as "unknown", with the reason, and its record with it; what was
// counted and is not in the log is written. It may be repeated, and does nothing
// twice. Calls may be nil. Nobody else may recover the same process at the
// same time.
//
// It returns how many admissions it closed.
func Recover(ctx context.Context, log *audit.Log, calls toolcall.Store, d Dead) (int, error) {
	if d.Instance == "" {
		return 0, errors.New("tracon: Recover without an instance")
	}
	counted := map[string]audit.Entry{}
	for _, e := range d.Counted {
		counted[e.ID] = e
	}
	left := map[[2]string][]audit.Leaf{} // by tenant and run; one id may have come twice
	for leaf, err := range log.Entries(ctx, "", d.From) {
		if err != nil {
			return 0, fmt.Errorf("tracon: looking for calls without an ending: %w", err)
		}
		e := leaf.Entry
		delete(counted, e.ID)
		switch run := [2]string{e.Tenant, e.Run}; {
		case e.Kind == audit.Admission && e.Fact("instance") == d.Instance:
			left[run] = append(left[run], leaf)
		case e.Kind == audit.Ending && len(left[run]) > 0:
			left[run] = left[run][1:]
		}
	}
	for _, id := range slices.Sorted(maps.Keys(counted)) {
		if _, err := log.Append(ctx, counted[id]); err != nil {
			return 0, err
		}
	}
	open := slices.Concat(slices.Collect(maps.Values(left))...)
	slices.SortFunc(open, func(a, b audit.Leaf) int { return cmp.Compare(a.Index, b.Index) })
	for n, leaf := range open {
		if err := closeUnknown(ctx, log, calls, leaf, died); err != nil {
			return n, err
		}
	}
	return len(open), nil
}

// Why an ending is not known.
const (
	died    = "the host process ended before it could write what came of the call"
	strange = "no sign is left of the host process that admitted the call: the database came here without it"
)

// A Watch is how far a log was looked through for admissions without an ending. The
// zero Watch looks from its beginning.
type Watch struct {
	Size uint64   // of the log then
	Open []uint64 // indexes of the admissions before that without an ending, whose hosts were known
}

// Settle closes as "unknown", with the reason, each admission without an ending whose
// host known does not know: one of which nothing is left that [Recover] could be
// called with, as after a database was restored without what lay beside it. A host
// must be known before it admits, and until its endings are written. An admission
// without an instance is left alone. Calls may be nil.
//
// It returns from where to look the next time, and how many admissions it closed.
func Settle(ctx context.Context, log *audit.Log, calls toolcall.Store, w Watch, known func(ctx context.Context, instance string) (bool, error)) (Watch, int, error) {
	open := map[[2]string][]audit.Leaf{} // by tenant and run
	admit := func(leaf audit.Leaf) {
		if e := leaf.Entry; e.Kind == audit.Admission && e.Fact("instance") != "" {
			open[[2]string{e.Tenant, e.Run}] = append(open[[2]string{e.Tenant, e.Run}], leaf)
		}
	}
	for _, index := range w.Open {
		leaf, err := log.Leaf(ctx, index)
		if err != nil {
			return w, 0, fmt.Errorf("tracon: looking for calls without an ending: %w", err)
		}
		admit(leaf)
	}
	look := func() error {
		for leaf, err := range log.Entries(ctx, "", w.Size) {
			if err != nil {
				return fmt.Errorf("tracon: looking for calls without an ending: %w", err)
			}
			w.Size = leaf.Index + 1
			admit(leaf)
			run := [2]string{leaf.Entry.Tenant, leaf.Entry.Run}
			if leaf.Entry.Kind != audit.Ending || len(open[run]) == 0 {
				continue
			}
			if open[run] = open[run][1:]; len(open[run]) == 0 {
				delete(open, run)
			}
		}
		return nil
	}
	if err := look(); err != nil {
		return w, 0, err
	}
	nobody := map[string]bool{}
	for _, leaves := range open {
		for _, leaf := range leaves {
			name := leaf.Entry.Fact("instance")
			if _, asked := nobody[name]; asked {
				continue
			}
			is, err := known(ctx, name)
			if err != nil {
				return w, 0, err
			}
			nobody[name] = !is
		}
	}
	// Who is not known any more may have written its endings since they were looked for.
	if err := look(); err != nil {
		return w, 0, err
	}
	left := slices.Concat(slices.Collect(maps.Values(open))...)
	slices.SortFunc(left, func(a, b audit.Leaf) int { return cmp.Compare(a.Index, b.Index) })
	w.Open = nil
	closed := 0
	for _, leaf := range left {
		if !nobody[leaf.Entry.Fact("instance")] {
			w.Open = append(w.Open, leaf.Index)
			continue
		}
		if err := closeUnknown(ctx, log, calls, leaf, strange); err != nil {
			return w, closed, err
		}
		closed++
	}
	return w, closed, nil
}

// closeUnknown writes the ending of an admission of which nothing more is known.
func closeUnknown(ctx context.Context, log *audit.Log, calls toolcall.Store, leaf audit.Leaf, why string) error {
	a := leaf.Entry
	ending := audit.Entry{Tenant: a.Tenant, Actor: a.Actor, Kind: audit.Ending, Subject: a.Subject, Run: a.Run,
		Facts: audit.Facts("ending", "unknown", "reason", why, "instance", a.Fact("instance"))}
	write := func() error { _, err := log.Append(ctx, ending); return err }
	if calls == nil {
		return write()
	}
	skill := a.Fact("skill")
	rec := toolcall.Record{
		ID: a.Run, Tenant: a.Tenant, Actor: a.Actor, Skill: skill, Script: strings.TrimPrefix(a.Subject, skill+" "),
		Digest: digest(a, "digest"), ScriptDigest: digest(a, "script"), Grant: a.Fact("grant"),
		Executor: a.Fact("executor"), Tier: a.Fact("tier"), Admitted: a.Time, Ended: time.Now(), Ending: "unknown",
		Notes: []string{why}, AdmissionIndex: leaf.Index,
	}
	_, _ = fmt.Sscan(a.Fact("argumentsBytes"), &rec.ArgumentsBytes) // else it stays zero
	_, err := log.Commit(ctx, ending, func(ctx context.Context, p audit.Pending) error { return calls.AddCall(ctx, rec, p) })
	if errors.Is(err, toolcall.ErrExists) {
		was, err := calls.Call(ctx, a.Tenant, a.Run)
		if err != nil {
			return fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
		}
		if was.AdmissionIndex == leaf.Index {
			return nil // another host closed it meanwhile: one ending is enough
		}
		return write() // two calls came with one id; see job.finish
	}
	if err != nil {
		return fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
	}
	return nil
}

func digest(e audit.Entry, fact string) bundle.Digest {
	d, _ := bundle.ParseDigest(e.Fact(fact)) // what the gate wrote; else zero
	return d
}
