package sqlstore

import (
	"context"
	"math"
	"time"

	"github.com/tracon-go/tracon/store/internal/keep"
	"github.com/tracon-go/tracon/toolcall"
)

// dayOf is the number of the day on which t lies, in days since 1970.
func dayOf(t time.Time) int64 { return t.UTC().Truncate(24*time.Hour).Unix() / (24 * 60 * 60) }

// count adds what the call came to.
func (w *writer) count(ctx context.Context, r toolcall.Record) error {
	u := r.Daily()
	_, err := w.do[addDaily].ExecContext(ctx, r.Tenant, dayOf(u.Day), u.Skill, u.Calls, u.Succeeded, u.Duration.Microseconds(), u.Waited.Microseconds(), u.OutputBytes)
	return err
}

// DailyCalls implements [toolcall.Meter].
func (s *Store) DailyCalls(ctx context.Context, tenant string, f toolcall.DailyFilter) ([]toolcall.Daily, error) {
	limit, err := keep.Limit(f.Limit, toolcall.DefaultLimit)
	if err != nil {
		return nil, err
	}
	from, to, before := int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	for _, b := range []struct {
		day *int64
		at  time.Time
	}{{&from, f.From}, {&to, f.To}, {&before, f.BeforeDay}} {
		if !b.at.IsZero() {
			*b.day = dayOf(b.at)
		}
	}
	return list(ctx, s, "what the calls came to", scanDaily, daily, tenant, f.Skill, from, to, before, f.AfterSkill, limit)
}

func scanDaily(row scanner) (toolcall.Daily, error) {
	var u toolcall.Daily
	var day, duration, waited int64
	if err := row.Scan(&day, &u.Skill, &u.Calls, &u.Succeeded, &duration, &waited, &u.OutputBytes); err != nil {
		return toolcall.Daily{}, err
	}
	u.Day = time.Unix(day*24*60*60, 0).UTC()
	u.Duration, u.Waited = time.Duration(duration)*time.Microsecond, time.Duration(waited)*time.Microsecond
	return u, nil
}
