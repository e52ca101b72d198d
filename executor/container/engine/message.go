//go:build linux && (amd64 || arm64)

package engine

import (
	"encoding/binary"
	"errors"
)

// The room of the first process, as it counts in it; see init/amd64.s. A message comes
// to its beginning, what calls answer to its middle, and numbers that are kept from one
// message to the next to its end.
const (
	room       = 1 << 22
	scratch    = 3 << 20
	kept       = room - 1<<12
	recordSize = 72
)

// A slot is a number that the first process keeps.
type slot int

func (s slot) place() uint64 { return kept + 8*uint64(s) }

// Kinds of records.
const (
	recordEnd = iota
	recordCall
	recordFork
	recordTend
	recordPoint
)

// An arg is an argument of a system call: a number, a place in the room, or what is in
// one.
type arg struct {
	value uint64
	place bool // a place, whose address it is
	data  bool // a place in the message's data
	taken bool // the number that is in the place
}

func num[N int | uint | uintptr | int64 | uint64 | uint32](n N) arg { return arg{value: uint64(n)} }
func at(s slot) arg                                                 { return arg{value: s.place(), place: true} }
func of(s slot) arg                                                 { return arg{value: s.place(), taken: true} }
func inScratch(n int) arg                                           { return arg{value: scratch + uint64(n), place: true} }

// A record is a step of a message.
type record struct {
	kind   byte
	number uintptr
	keep   slot // where the result goes; zero: nowhere
	orElse int  // the record with which to go on after a failure, one more; zero: the next one; -1: nowhere
	args   []arg
}

// A message is what the first process of a container is asked to do. Its zero value
// asks nothing.
type message struct {
	records []record
	data    []byte
	words   map[int]int // places in data that hold another's address
}

// bytes adds data, and returns its place. Places are multiples of eight.
func (m *message) bytes(b []byte) arg {
	p := len(m.data)
	m.data = append(m.data, b...)
	m.data = append(m.data, make([]byte, -len(m.data)&7)...)
	return arg{value: uint64(p), place: true, data: true}
}

// text adds a text as C has it.
func (m *message) text(s string) arg { return m.bytes(append([]byte(s), 0)) }

// addresses adds a list of addresses that ends with none, or, with first, a word
// before one address.
func (m *message) addresses(first []byte, list ...arg) arg {
	where := m.bytes(append(append([]byte(nil), first...), make([]byte, 8*(len(list)+1))...))
	if m.words == nil {
		m.words = map[int]int{}
	}
	for i, a := range list {
		m.words[int(where.value)+len(first)+8*i] = int(a.value)
	}
	from := where
	from.value += uint64(len(first))
	m.records = append(m.records, record{kind: recordPoint, args: []arg{{value: from.value, data: true}, num(len(list))}})
	return where
}

// try makes a call that may fail; its result is kept in the slot, unless that is zero.
func (m *message) try(number uintptr, keep slot, args ...arg) {
	m.records = append(m.records, record{kind: recordCall, number: number, keep: keep, args: args})
}

// must makes a call; where it fails, the first process says so and ends.
func (m *message) must(number uintptr, keep slot, args ...arg) {
	m.try(number, keep, args...)
	m.records[len(m.records)-1].orElse = -1
}

// errTooLarge: there is more to say than the first process takes at once.
var errTooLarge = errors.New("the arguments are too large")

// encode writes the message as the first process reads it.
func (m *message) encode() ([]byte, error) {
	base := (len(m.records) + 1) * recordSize // the last one ends it
	size := base + len(m.data)
	if size > scratch {
		return nil, errTooLarge
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+size), uint32(size))
	le := binary.LittleEndian
	for _, r := range append(m.records[:len(m.records):len(m.records)], record{}) {
		var mask, keep, orElse uint32
		var args [6]uint64
		for i, a := range r.args {
			args[i] = a.value
			if a.data {
				args[i] += uint64(base)
			}
			if a.place {
				mask |= 1 << i
			}
			if a.taken {
				mask |= 1 << (8 + i)
			}
		}
		if r.keep != 0 {
			keep = uint32(r.keep.place())
		}
		switch {
		case r.orElse < 0:
			orElse = 1
		case r.orElse > 0:
			orElse = uint32((r.orElse - 1) * recordSize)
		}
		b = append(b, r.kind, 0, 0, 0)
		for _, n := range []uint32{uint32(r.number), mask, keep, orElse, 0} {
			b = le.AppendUint32(b, n)
		}
		for _, n := range args {
			b = le.AppendUint64(b, n)
		}
	}
	from := len(b)
	b = append(b, m.data...)
	for where, to := range m.words {
		le.PutUint64(b[from+where:], uint64(base+to))
	}
	return b, nil
}
