package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/tracon-go/tracon/toolcall"
)

// usage returns what the tenant's calls came to, as text.
func (k *kit) usage(tenant string, f toolcall.DailyFilter) (all []string) {
	k.Helper()
	sums, err := k.store.DailyCalls(k.Context(), tenant, f)
	k.must(err)
	for _, u := range sums {
		if !u.Day.Equal(u.Day.UTC().Truncate(24*time.Hour)) || u.Day.Location() != time.UTC {
			k.broken("%v is no day", u.Day)
		}
		all = append(all, fmt.Sprintf("%s %s %d/%d %v %v %d", u.Day.Format(time.DateOnly), u.Skill, u.Succeeded, u.Calls, u.Duration, u.Waited, u.OutputBytes))
	}
	return all
}

// ended is a record of a call of skill that ended then.
func ended(n int, skill string, at time.Time, code *int) toolcall.Record {
	return toolcall.Record{ID: id(n), Tenant: alpha, Skill: skill, Ended: at, ExitCode: code, Duration: 1500 * time.Microsecond, Waited: 2 * time.Microsecond,
		StdoutBytes: 1, StderrBytes: 20, OutputBytes: 300}
}

func usageSums(k *kit) {
	k.same("without a call", k.usage(alpha, toolcall.DailyFilter{}), []string(nil))
	night := time.Date(2026, 3, 4, 23, 59, 59, 999_999_999, time.UTC)
	k.must(k.addCall(ended(1, "one", night, new(0))))
	k.must(k.addCall(ended(2, "one", night.In(time.FixedZone("", 7200)), new(3)))) // there it is the next day
	k.must(k.addCall(ended(3, "one", night.Add(1), nil)))
	k.must(k.addCall(ended(4, "two", night, new(0))))
	k.wants(k.addCall(ended(4, "two", night, new(0))), toolcall.ErrExists, "a record a second time")
	want := []string{"2026-03-05 one 0/1 1.5ms 2µs 321", "2026-03-04 one 1/2 3ms 4µs 642", "2026-03-04 two 1/1 1.5ms 2µs 321"}
	k.same("the sums", k.usage(alpha, toolcall.DailyFilter{}), want)
	k.must(k.eraseCalls(alpha, []string{id(1)}, []string{id(2)}))
	k.same("the sums after records were erased", k.usage(alpha, toolcall.DailyFilter{}), want)

	// No record, whatever stands in it, makes a sum overflow or less.
	for i, n := range []int64{math.MaxInt64, math.MaxInt64, math.MinInt64} {
		k.must(k.addCall(toolcall.Record{ID: id(10 + i), Tenant: beta, Skill: "odd", Ended: night, Duration: time.Duration(n), Waited: time.Duration(n), OutputBytes: n}))
	}
	sums, err := k.store.DailyCalls(k.Context(), beta, toolcall.DailyFilter{})
	k.must(err)
	if len(sums) != 1 || sums[0].Calls != 3 || sums[0].Duration <= 0 || sums[0].Waited <= 0 || sums[0].OutputBytes <= 0 {
		k.broken("records with odd numbers come to %+v", sums)
	}
}

func usageList(k *kit) {
	first := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	var want []string // the newest day first
	for d := range 4 {
		var day []string
		for _, skill := range []string{"on", "on_", "one"} {
			n++
			k.must(k.addCall(ended(n, skill, first.AddDate(0, 0, 3-d), nil)))
			day = append(day, first.AddDate(0, 0, 3-d).Format(time.DateOnly)+" "+skill+" 0/1 1.5ms 2µs 321")
		}
		want = append(want, day...)
	}
	day := func(d int) time.Time { return first.AddDate(0, 0, d) }
	for _, tt := range []struct {
		name string
		f    toolcall.DailyFilter
		want []string
	}{
		{"all", toolcall.DailyFilter{}, want},
		{"five", toolcall.DailyFilter{Limit: 5}, want[:5]},
		{"one skill", toolcall.DailyFilter{Skill: "on_"}, []string{want[1], want[4], want[7], want[10]}},
		{"no such skill", toolcall.DailyFilter{Skill: "ON"}, nil},
		{"from a day on", toolcall.DailyFilter{From: day(2)}, want[:6]},
		{"to a day", toolcall.DailyFilter{To: day(1)}, want[6:]},
		{"one day", toolcall.DailyFilter{From: day(1), To: day(1)}, want[6:9]},
		{"no day", toolcall.DailyFilter{From: day(2), To: day(1)}, nil},
		{"behind a place", toolcall.DailyFilter{BeforeDay: day(2), AfterSkill: "on_", Limit: 3}, want[5:8]},
		{"behind the beginning of a day", toolcall.DailyFilter{BeforeDay: day(0)}, want[9:]},
		{"behind the last", toolcall.DailyFilter{BeforeDay: day(0), AfterSkill: "one"}, nil},
	} {
		k.same(tt.name, k.usage(alpha, tt.f), tt.want)
	}
	if _, err := k.store.DailyCalls(k.Context(), alpha, toolcall.DailyFilter{Limit: -1}); err == nil {
		k.broken("a negative limit is no error")
	}
}
