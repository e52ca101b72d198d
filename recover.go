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
		if err := closeUnknown(ctx, log, calls, leaf); err != nil {
			return n, err
		}
	}
	return len(open), nil
}

// died is why an ending is not known.
const died = "the host process ended before it could write what came of the call"

// closeUnknown writes the ending of an admission of which nothing more is known.
func closeUnknown(ctx context.Context, log *audit.Log, calls toolcall.Store, leaf audit.Leaf) error {
	a := leaf.Entry
	ending := audit.Entry{Tenant: a.Tenant, Actor: a.Actor, Kind: audit.Ending, Subject: a.Subject, Run: a.Run,
		Facts: audit.Facts("ending", "unknown", "reason", died, "instance", a.Fact("instance"))}
	write := func() error { _, err := log.Append(ctx, ending); return err }
	if calls == nil {
		return write()
	}
	skill := a.Fact("skill")
	rec := toolcall.Record{
		ID: a.Run, Tenant: a.Tenant, Actor: a.Actor, Skill: skill, Script: strings.TrimPrefix(a.Subject, skill+" "),
		Digest: digest(a, "digest"), ScriptDigest: digest(a, "script"), Grant: a.Fact("grant"),
		Executor: a.Fact("executor"), Tier: a.Fact("tier"), Admitted: a.Time, Ended: time.Now(), Ending: "unknown",
		Notes: []string{died}, AdmissionIndex: leaf.Index,
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
