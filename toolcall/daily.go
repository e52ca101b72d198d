package toolcall

import (
	"context"
	"time"
)

// A Daily is what the calls of one skill came to that ended on one day. It is counted
// in one transaction with each record, and stays when records are erased. It is for
// information: what must be proved is counted from the endings in the log.
type Daily struct {
	Day         time.Time // its beginning, UTC
	Skill       string
	Calls       int64         // that were admitted and have ended
	Succeeded   int64         // of them, those with exit code 0
	Duration    time.Duration // of the executor's calls, in microseconds
	Waited      time.Duration // for slots, in microseconds
	OutputBytes int64         // of streams and files
}

// mostOfOne bounds what one call adds, so that no record can make a sum overflow.
const mostOfOne = 1 << 40

// Daily returns what r alone comes to.
func (r Record) Daily() Daily {
	bounded := func(n int64) int64 { return min(max(n, 0), mostOfOne) }
	u := Daily{
		Day: r.Ended.UTC().Truncate(24 * time.Hour), Skill: r.Skill, Calls: 1,
		Duration:    time.Duration(bounded(r.Duration.Microseconds())) * time.Microsecond,
		Waited:      time.Duration(bounded(r.Waited.Microseconds())) * time.Microsecond,
		OutputBytes: bounded(bounded(int64(r.StdoutBytes)) + bounded(int64(r.StderrBytes)) + bounded(r.OutputBytes)),
	}
	if r.ExitCode != nil && *r.ExitCode == 0 {
		u.Succeeded = 1
	}
	return u
}

// Plus returns u with what o came to.
func (u Daily) Plus(o Daily) Daily {
	u.Calls += o.Calls
	u.Succeeded += o.Succeeded
	u.Duration += o.Duration
	u.Waited += o.Waited
	u.OutputBytes += o.OutputBytes
	return u
}

// A DailyFilter chooses days and skills. The zero DailyFilter chooses the newest.
type DailyFilter struct {
	Skill    string    // empty: all
	From, To time.Time // days, both included; zero: without a bound
	Limit    int       // at most so many; zero means 100, a negative one is an error

	// BeforeDay and AfterSkill go on behind that place in the list: the newest day
	// comes first, and within a day the skills in bytewise order. Zero: the beginning.
	BeforeDay  time.Time
	AfterSkill string
}

// A Meter tells what the calls of a tenant came to. It must be safe for concurrent use.
type Meter interface {
	// DailyCalls returns the tenant's sums, the newest day first, and within a day by skill.
	DailyCalls(ctx context.Context, tenant string, f DailyFilter) ([]Daily, error)
}
