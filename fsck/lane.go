package fsck

import (
	"iter"
)

// ahead is how many rows a lane looks ahead for the one that an entry tells of.
const ahead = 1024

// A lane is rows in the order of their coming, beside entries in the order of the
// log: where all is well, the two go in step.
type lane[T any] struct {
	next  func() (T, error, bool)
	id    func(T) string
	fault func(error) error // nil for a row that is damaged, and was told
	rows  []T               // that were read and not taken
	count uint64
	err   error
}

// open returns the lane of rows. The caller calls stop at its end.
func open[T any](rows iter.Seq2[T, error], id func(T) string, fault func(error) error) (l *lane[T], stop func()) {
	l = &lane[T]{id: id, fault: fault}
	l.next, stop = iter.Pull2(rows)
	return l, stop
}

// fill reads one row more, and reports whether there was one.
func (l *lane[T]) fill() bool {
	for l.err == nil {
		row, err, ok := l.next()
		if !ok {
			return false
		}
		l.count++
		if err == nil {
			l.rows = append(l.rows, row)
			return true
		}
		l.err = l.fault(err)
	}
	return false
}

// take returns the row id, and the rows that stand before it, to which no entry
// came. Where it does not come within reach it takes none.
func (l *lane[T]) take(id string) (row T, before []T, ok bool) {
	for i := range ahead {
		if i == len(l.rows) && !l.fill() {
			break
		}
		if row = l.rows[i]; l.id(row) == id {
			before, l.rows = l.rows[:i:i], l.rows[i+1:]
			return row, before, true
		}
	}
	return *new(T), nil, false
}

// rest yields the rows that are left.
func (l *lane[T]) rest() iter.Seq[T] {
	return func(yield func(T) bool) {
		for len(l.rows) > 0 || l.fill() {
			row := l.rows[0]
			l.rows = l.rows[1:]
			if !yield(row) {
				return
			}
		}
	}
}
