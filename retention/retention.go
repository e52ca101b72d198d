// Package retention takes away, when its time is over, what is kept beside the log:
// contents, records of calls, and the details of records. The log itself keeps its
// entries and their hashes. Look with [Preview], then [Apply]; each erasure has its
// entry in the log, in the same transaction.
package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

// Subject is that of the entries, which are of the kind audit.Keeping: in the
// tenant's history for its records, in the host's for a content.
const Subject = "retention"

// Facts of the entry for records: how many were taken away, and before which time
// their calls had ended. Who checks what is kept goes by them: see package fsck.
const (
	FactRecords     = "records"
	FactEndedBefore = "recordsEndedBefore"
)

// LeastContents is the least time for contents. A run may last a day, and what it
// runs was granted when it began: so no run needs a content that is erased.
const LeastContents = 48 * time.Hour

// Rules say how long what is kept stays. Zero keeps it for ever.
type Rules struct {
	// Contents is how long a content stays that no grant in force pins, and that no
	// imported skill is of now: since the last of them ended. Zero keeps it; else at
	// least 48 hours.
	Contents time.Duration

	// Calls is how long the record of a call stays, since its ending.
	Calls time.Duration

	// Details is how long the record's arguments, the salt of the log's commitments
	// and its notes stay, since its ending.
	Details time.Duration
}

// ErrRules is wrapped by the error for rules that cannot hold.
var ErrRules = errors.New("retention: bad rules")

// Validate says why r cannot hold, or nil.
func (r Rules) Validate() error {
	switch {
	case r.Contents < 0 || r.Calls < 0 || r.Details < 0:
		return fmt.Errorf("%w: a time is negative; zero keeps for ever", ErrRules)
	case r.Contents > 0 && r.Contents < LeastContents:
		return fmt.Errorf("%w: contents stay at least %s, because a run may last a day", ErrRules, LeastContents)
	}
	return nil
}

// An Erasure counts what was taken away, or would be.
type Erasure struct {
	Contents uint64 `json:"contents"`
	Calls    uint64 `json:"calls"`   // records
	Details  uint64 `json:"details"` // records that stay without their details
}

// Preview counts what [Apply] would take away at the time now. It changes nothing.
func Preview(ctx context.Context, st store.Store, r Rules, now time.Time) (Erasure, error) {
	return run(ctx, &erasing{store: st, rules: r, now: now})
}

// Apply takes away what the time now and the rules say, in steps: where it fails,
// what it took away until then has its entries. Others may go on meanwhile; a
// content that somebody grants or imports meanwhile stays.
//
// # Errors
//
// ErrRules; grant.ErrConflict where somebody else erases at the same time; and
// those of the log and the store.
func Apply(ctx context.Context, st store.Store, log *audit.Log, actor string, r Rules, now time.Time) (Erasure, error) {
	if log == nil {
		return Erasure{}, errors.New("retention: Apply without a log")
	}
	return run(ctx, &erasing{store: st, log: log, actor: audit.Clip(actor), rules: r, now: now})
}

type erasing struct {
	store store.Store
	log   *audit.Log // nil: nothing is taken away
	actor string
	rules Rules
	now   time.Time
	done  Erasure

	// all is for a tenant that is deleted: whatever their time, its records go, and the
	// contents that nobody else names.
	all    bool
	tenant string
}

func run(ctx context.Context, e *erasing) (Erasure, error) {
	if err := e.rules.Validate(); err != nil {
		return Erasure{}, err
	}
	if e.store == nil {
		return Erasure{}, errors.New("retention: without a store")
	}
	expired, tenants, err := e.look(ctx)
	if err != nil {
		return e.done, err
	}
	if e.all {
		tenants = []string{e.tenant}
	}
	for _, tenant := range tenants {
		if err := e.calls(ctx, tenant); err != nil {
			return e.done, err
		}
	}
	for _, c := range expired {
		switch err := e.content(ctx, c); {
		case errors.Is(err, grant.ErrConflict): // somebody names it since, or erased it
		case err != nil:
			return e.done, err
		default:
			e.done.Contents++
		}
	}
	return e.done, nil
}

// commit makes a change with its entry, where anything is to be changed.
func (e *erasing) commit(ctx context.Context, tenant string, facts []audit.Fact, change func(context.Context, audit.Pending) error) error {
	if e.log == nil {
		return nil
	}
	_, err := e.log.Commit(ctx, audit.Entry{Tenant: tenant, Actor: e.actor, Kind: audit.Keeping, Subject: Subject, Facts: facts}, change)
	return err
}

// page is how many records one look takes, and one entry at most stands for.
const page = 256

// calls takes away the tenant's records and details whose time is over.
func (e *erasing) calls(ctx context.Context, tenant string) error {
	if e.rules.Calls == 0 && e.rules.Details == 0 && !e.all {
		return nil
	}
	cutoff := func(d time.Duration) time.Time { return e.now.Add(-d) }
	over := func(ended time.Time, d time.Duration) bool { return d > 0 && ended.Before(cutoff(d)) }
	// Every record is looked at: a call's id holds a time, which its caller may choose.
	before := ""
	for {
		records, err := e.store.Calls(ctx, tenant, toolcall.Filter{Before: before, Limit: page})
		if err != nil {
			return err
		}
		var remove, strip []string
		end := cutoff(e.rules.Calls)
		for _, r := range records {
			switch {
			case e.all || over(r.Ended, e.rules.Calls):
				remove = append(remove, r.ID)
				if !r.Ended.Before(end) { // by another host's clock
					end = r.Ended.Add(time.Nanosecond)
				}
			case over(r.Ended, e.rules.Details) && r.HasDetails():
				strip = append(strip, r.ID)
			}
			before = r.ID
		}
		if len(remove)+len(strip) > 0 {
			until := ""
			if len(remove) > 0 {
				until = end.UTC().Format(time.RFC3339Nano)
			}
			facts := audit.Facts(FactRecords, count(remove), FactEndedBefore, until, "recordsOlderThan", age(e.rules.Calls),
				"details", count(strip), "detailsOlderThan", age(e.rules.Details))
			err := e.commit(ctx, tenant, facts, func(ctx context.Context, p audit.Pending) error {
				return e.store.EraseCalls(ctx, tenant, remove, strip, p)
			})
			if err != nil {
				return err
			}
			e.done.Calls, e.done.Details = e.done.Calls+uint64(len(remove)), e.done.Details+uint64(len(strip))
		}
		if len(records) < page {
			return nil
		}
	}
}

func count(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprint(len(ids))
}

func age(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
