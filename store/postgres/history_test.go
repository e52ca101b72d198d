package postgres_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/tracon-go/tracon/slot"
)

// A deed is one operation in a history of hosts that share slots.
type deed struct {
	what   deedKind
	host   int
	slot   int64 // taken, released, lost
	tenant string
}

type deedKind string

const (
	taken    deedKind = "takes"    // a call was given a slot
	released deedKind = "releases" // its slot was given back
	lost     deedKind = "loses"    // its slot was its host's no longer
	fenced   deedKind = "fences"   // the host was taken for dead
	wrote    deedKind = "writes"   // the host made a change
)

func (d deed) String() string {
	if d.what == fenced || d.what == wrote {
		return fmt.Sprintf("host %d %s", d.host, d.what)
	}
	return fmt.Sprintf("host %d %s slot %d of %s", d.host, d.what, d.slot, d.tenant)
}

// A sharing is what the pool is at one moment: who has a slot, in the order of the
// slots' numbers, and who is fenced. It is not changed once it is made.
type sharing struct {
	slots  []deed
	fenced []int
}

func (s sharing) of(match func(deed) bool) (n int) {
	for _, d := range s.slots {
		if match(d) {
			n++
		}
	}
	return n
}

// then returns the pool after d, and whether d could be: B9, R17. No more slots are
// out than there are, in all and of a tenant; who was fenced gets none and changes
// nothing; nobody is fenced who has one; and what is given back twice, or by whom it
// was lost, gives nobody anything.
func (s sharing) then(d deed, l slot.Limits) (bool, sharing) {
	out := slices.Contains(s.fenced, d.host)
	switch d.what {
	case taken:
		if out || len(s.slots) >= l.Slots || s.of(func(h deed) bool { return h.tenant == d.tenant }) >= l.SlotsPerTenant {
			return false, s
		}
		at, _ := slices.BinarySearchFunc(s.slots, d, bySlot)
		return true, sharing{slices.Insert(slices.Clone(s.slots), at, d), s.fenced}
	case released, lost:
		if at, has := slices.BinarySearchFunc(s.slots, d, bySlot); has {
			return true, sharing{slices.Delete(slices.Clone(s.slots), at, at+1), s.fenced}
		}
		return true, s
	case fenced:
		if s.of(func(h deed) bool { return h.host == d.host }) > 0 {
			return false, s
		}
		return true, sharing{s.slots, append(slices.Clone(s.fenced), d.host)}
	case wrote:
		return !out, s
	}
	return false, s
}

func bySlot(a, b deed) int { return cmp.Compare(a.slot, b.slot) }

// apart parts what has nothing to do with one another: slots, and each host's changes.
func apart(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	parts = append(parts, nil)
	changes := map[int][]porcupine.Operation{}
	for _, o := range history {
		switch d := o.Input.(deed); d.what {
		case fenced:
			parts[0] = append(parts[0], o)
			changes[d.host] = append(changes[d.host], o)
		case wrote:
			changes[d.host] = append(changes[d.host], o)
		case taken, released, lost:
			parts[0] = append(parts[0], o)
		}
	}
	for _, one := range changes {
		parts = append(parts, one)
	}
	return parts
}

// never stands for the end of what may still come: nobody was told that it ended.
const never = math.MaxInt64

// unordered says why no order of the history agrees with both the pool and with
// what came after what; "" where there is one.
func unordered(history []porcupine.Operation, l slot.Limits) string {
	model := porcupine.Model{
		Init: func() any { return sharing{} },
		Step: func(s, in, _ any) (bool, any) { return s.(sharing).then(in.(deed), l) },
		Equal: func(a, b any) bool {
			return slices.Equal(a.(sharing).slots, b.(sharing).slots) && slices.Equal(a.(sharing).fenced, b.(sharing).fenced)
		},
	}
	for _, part := range apart(history) {
		result, info := porcupine.CheckOperationsVerbose(model, part, 0)
		if result == porcupine.Ok {
			continue
		}
		longest := slices.MaxFunc(info.PartialLinearizationsOperations()[0], func(a, b []porcupine.Operation) int { return len(a) - len(b) })
		var b strings.Builder
		fmt.Fprintf(&b, "%d operations have no order; %d of them have, and end with", len(part), len(longest))
		for _, o := range longest[max(0, len(longest)-20):] {
			fmt.Fprintf(&b, "\n%d to %d: %s", o.Call, o.Return, o.Input)
		}
		return b.String()
	}
	return ""
}

// TestHistories: B9, R17. What the check of histories is there for: one in which the
// pool gave too much is refused, and one that only looks like it is not.
func TestHistories(t *testing.T) {
	const a, b = "a", "b"
	op := func(call, ret int64, what deedKind, host int, slot int64, tenant string) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Input: deed{what, host, slot, tenant}}
	}
	limits := slot.Limits{Slots: 3, SlotsPerTenant: 2}
	full := []porcupine.Operation{op(1, 2, taken, 1, 1, a), op(3, 4, taken, 2, 2, a), op(5, 6, taken, 1, 3, b)}
	for _, tt := range []struct {
		name string
		ok   bool
		then []porcupine.Operation
	}{
		{"all slots are out", true, nil},
		{"one more", false, []porcupine.Operation{op(7, 8, taken, 2, 4, b)}},
		{"one of the same tenant more", false, []porcupine.Operation{op(7, 8, released, 1, 3, b), op(9, 10, taken, 2, 4, a)}},
		{"one more after one came back", true, []porcupine.Operation{op(7, 8, released, 2, 2, a), op(9, 10, taken, 2, 4, b)}},
		{"one more while one comes back", true, []porcupine.Operation{op(7, 20, released, 2, 2, a), op(8, 9, taken, 2, 4, b)}},
		{"one more before one comes back", false, []porcupine.Operation{op(7, 8, taken, 2, 4, b), op(9, 10, released, 2, 2, a)}},
		{"a slot comes back twice", false, []porcupine.Operation{op(7, 8, released, 2, 2, a), op(9, 10, released, 2, 2, a),
			op(11, 12, taken, 2, 4, b), op(13, 14, taken, 2, 5, b)}},
		{"what was lost comes back: to nobody", false, []porcupine.Operation{op(7, never, lost, 2, 2, a), op(9, 10, taken, 1, 4, b),
			op(11, 12, released, 2, 2, a), op(13, 14, taken, 1, 5, a)}},
		{"a slot goes to others before it is lost", false, []porcupine.Operation{op(7, 8, taken, 1, 4, b), op(9, never, lost, 2, 2, a)}},
		{"a slot goes to others when it is lost", true, []porcupine.Operation{op(7, never, lost, 2, 2, a), op(8, 9, taken, 1, 4, b)}},
		{"who has a slot is fenced", false, []porcupine.Operation{op(7, 8, fenced, 2, 0, "")}},
		{"who lost it is fenced", true, []porcupine.Operation{op(7, never, lost, 2, 2, a), op(8, 9, fenced, 2, 0, "")}},
		{"who is fenced gets a slot", false, []porcupine.Operation{op(7, 8, lost, 2, 2, a), op(8, 9, fenced, 2, 0, ""), op(10, 11, taken, 2, 4, a)}},
		{"who is fenced changes something", false, []porcupine.Operation{op(7, 8, fenced, 3, 0, ""), op(9, 10, wrote, 3, 0, "")}},
		{"who is being fenced changes something", true, []porcupine.Operation{op(7, 10, fenced, 3, 0, ""), op(8, 9, wrote, 3, 0, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if why := unordered(append(slices.Clone(full), tt.then...), limits); (why == "") != tt.ok {
				t.Errorf("it has an order: %v, want %v. %s", why == "", tt.ok, why)
			}
		})
	}
}
