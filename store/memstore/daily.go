package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/store/internal/keep"
	"github.com/tracon-go/tracon/toolcall"
)

// day is the place of a sum.
type day struct {
	at    int64 // seconds since 1970, of its beginning
	skill string
}

// count adds what the call came to.
func (t *tenant) count(r toolcall.Record) {
	u := r.Daily()
	at := day{u.Day.Unix(), u.Skill}
	if was, ok := t.daily[at]; ok {
		u = was.Plus(u)
	}
	t.daily[at] = u
}

// DailyCalls implements [toolcall.Meter].
func (s *Store) DailyCalls(ctx context.Context, name string, f toolcall.DailyFilter) (found []toolcall.Daily, err error) {
	limit, err := keep.Limit(f.Limit, toolcall.DefaultLimit)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, name, func(t *tenant) error {
		for _, u := range t.daily {
			if chosen(u, f) {
				found = append(found, u)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b toolcall.Daily) int {
		if c := b.Day.Compare(a.Day); c != 0 {
			return c
		}
		return strings.Compare(a.Skill, b.Skill)
	})
	return found[:min(len(found), limit)], err
}

func chosen(u toolcall.Daily, f toolcall.DailyFilter) bool {
	on := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
	switch {
	case f.Skill != "" && u.Skill != f.Skill,
		!f.From.IsZero() && u.Day.Before(on(f.From)),
		!f.To.IsZero() && u.Day.After(on(f.To)):
		return false
	case f.BeforeDay.IsZero():
		return true
	}
	c := u.Day.Compare(on(f.BeforeDay))
	return c < 0 || c == 0 && u.Skill > f.AfterSkill
}
