// Package mask takes known secrets out of what scripts write (O09): the values that a
// policy marks, and the text of this system's own keys. It finds a value as it is. One
// that is encoded, turned round or parted by other bytes it does not find.
package mask

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// Least is how many bytes a value has at least: a shorter one would be found in
// ordinary text. Where a stream was cut, a beginning of a secret is masked from half as
// many on.
const Least = 8

// A Masker knows what to mask. It never changes, and is safe for concurrent use.
type Masker struct {
	secrets []secret // the longest first
	longest int
	starts  [256]bool // bytes that something to mask begins with
}

type secret struct{ label, value string }

// New returns a Masker of values by their names, and of keys. A value of less than
// [Least] bytes is passed over.
func New(values map[string]string) *Masker {
	m := &Masker{longest: keyBytes}
	m.starts[keyPrefix[0]] = true
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := values[name]; len(v) >= Least {
			m.secrets = append(m.secrets, secret{Label(name), v})
			m.longest = max(m.longest, len(v))
			m.starts[v[0]] = true
		}
	}
	slices.SortStableFunc(m.secrets, func(a, b secret) int { return cmp.Compare(len(b.value), len(a.value)) })
	return m
}

// Label returns what stands for the value of that name.
func Label(name string) string { return "[secret " + name + "]" }

// Bytes returns b with each secret replaced by its label; b itself where there is none.
// Cut says that b was cut at its end, perhaps within a secret.
func (m *Masker) Bytes(b []byte, cut bool) []byte {
	s := m.Stream()
	out := s.Write(b)
	if rest := s.Close(cut); len(rest) > 0 {
		if len(out)+len(rest) == len(b) && bytes.Equal(rest, b[len(out):]) && bytes.Equal(out, b[:len(out)]) {
			return b
		}
		out = append(slices.Clip(out), rest...)
	}
	return out
}

// Longest returns how many bytes the longest of what is masked has.
func (m *Masker) Longest() int { return m.longest }

// Text is Bytes for a whole text.
func (m *Masker) Text(s string) string { return string(m.Bytes([]byte(s), false)) }

// Stream returns a Masker's way through one stream that comes in pieces.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// A Stream masks one stream. However it is parted, the same comes out. It holds back what
// may be the beginning of a secret: less than the longest one. It is not safe for
// concurrent use.
type Stream struct {
	m       *Masker
	held    []byte
	covered int // bytes of held that a label stands for already
}

// Write returns what can be shown now. It may share memory with b.
func (s *Stream) Write(b []byte) []byte {
	if len(s.held) > 0 {
		b = append(s.held, b...)
	}
	out, at := s.scan(b, false)
	s.held = slices.Clone(b[at:])
	return out
}

// Close returns the rest. Where the stream was cut, the beginning of a secret at its end
// is masked too, if it has half of [Least].
func (s *Stream) Close(cut bool) []byte {
	held := s.held
	s.held = nil
	if !cut || len(held) < Least/2 {
		out, _ := s.scan(held, true)
		return out
	}
	if s.covered > 0 {
		return nil
	}
	label, _ := s.m.begins(held)
	return []byte(label)
}

// scan masks b up to where what follows could decide. Secrets that overlap have one label.
func (s *Stream) scan(b []byte, whole bool) (out []byte, at int) {
	from, covered, changed := s.covered, s.covered, s.covered > 0
	for ; at < len(b); at++ {
		if !s.m.starts[b[at]] {
			continue
		}
		if !whole && len(b)-at < s.m.longest {
			if _, yes := s.m.begins(b[at:]); yes {
				break
			}
		}
		n, label := s.m.match(b[at:])
		if n == 0 {
			continue
		}
		if at >= covered {
			out = append(append(out, b[from:at]...), label...)
		}
		covered = max(covered, at+n)
		from, changed = covered, true
	}
	s.covered = max(covered-at, 0)
	if !changed {
		return b[:at], at
	}
	return append(out, b[min(from, at):at]...), at
}

// match returns how many bytes the longest secret has with which b begins, or zero.
func (m *Masker) match(b []byte) (n int, label string) {
	for _, s := range m.secrets {
		if len(s.value) <= len(b) && string(b[:len(s.value)]) == s.value {
			n, label = len(s.value), s.label
			break
		}
	}
	if n < keyBytes && isKey(b) {
		return keyBytes, KeyLabel
	}
	return n, label
}

// begins reports whether b is the beginning of something longer to mask.
func (m *Masker) begins(b []byte) (label string, yes bool) {
	for _, s := range m.secrets {
		if len(b) < len(s.value) && s.value[:len(b)] == string(b) {
			return s.label, true
		}
	}
	return KeyLabel, len(b) < keyBytes && likeKey(b)
}
