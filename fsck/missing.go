package fsck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/retention"
)

// missing are the calls of a tenant that ended and have no record. Each must be one
// whose record retention erased since, and there must be no more of them than it did.
type missing struct {
	calls map[string]ended // those that no erasure covers yet, by id
	total uint64
	told  uint64 // how many the log tells were erased
}

// An ended is a call without a record.
type ended struct {
	index    uint64 // of the ending
	admitted time.Time
}

// clocks is how far the clocks of several hosts may be apart.
const clocks = time.Hour

// add takes a call that ended and has no record. One id may have come more than once,
// and had one record.
func (m *missing) add(run string, index uint64, admitted time.Time) {
	if _, has := m.calls[run]; has {
		return
	}
	m.calls[run] = ended{index, admitted}
	m.total++
}

// erased takes the entry of an erasure: it covers the calls before it that had ended
// before its time.
func (m *missing) erased(e audit.Entry) {
	n, err := strconv.ParseUint(e.Fact(retention.FactRecords), 10, 64)
	if err != nil {
		return // it is about details or contents
	}
	m.told += n
	until, err := time.Parse(time.RFC3339Nano, e.Fact(retention.FactEndedBefore))
	if err != nil {
		return
	}
	maps.DeleteFunc(m.calls, func(_ string, c ended) bool { return c.admitted.Before(until.Add(clocks)) })
}

// unerased tells of the records that somebody else than retention took away.
func (h *history) unerased() {
	m := h.missing
	for _, run := range slices.SortedFunc(maps.Keys(m.calls), func(a, b string) int { return cmp.Compare(m.calls[a].index, m.calls[b].index) }) {
		h.amiss("I6", audit.Leaf{Index: m.calls[run].index}, "the record of call %s is gone, and no entry tells that its time was over", run)
	}
	if m.total > m.told && (m.told > 0 || len(m.calls) == 0) {
		h.found(Finding{Invariant: "I6", Tenant: h.name, Remedy: inquire,
			What: fmt.Sprintf("%d records of calls are gone, and the log tells of %d whose time was over", m.total, m.told)})
	}
}
