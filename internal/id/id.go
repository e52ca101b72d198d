// Package id makes the ids of calls, grants and entries: UUIDs of version 7.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

var last struct {
	sync.Mutex
	ticks uint64
}

// Valid reports whether s is the text of a UUIDv7, in lower case.
func Valid(s string) bool {
	if len(s) != 36 || s[14] != '7' || !strings.ContainsRune("89ab", rune(s[19])) {
		return false
	}
	for i := range len(s) {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if s[i] != '-' {
				return false
			}
		case !strings.Contains("0123456789abcdef", s[i:i+1]):
			return false
		}
	}
	return true
}

// New returns a UUIDv7 (RFC 9562, section 6.2, method 3): 48 bits of
// milliseconds and 12 bits of the fraction, so that ids of one process rise
// strictly, then 62 random bits. It is safe for concurrent use.
func New() string {
	now := time.Now()
	ticks := uint64(now.UnixMilli())<<12 | uint64(now.Nanosecond()%1e6)<<12/1e6
	last.Lock()
	ticks = max(ticks, last.ticks+1)
	last.ticks = ticks
	last.Unlock()

	var u [16]byte
	binary.BigEndian.PutUint64(u[:], ticks>>12<<16|ticks&0xfff|0x7000)
	_, _ = rand.Read(u[8:]) // never fails; see crypto/rand
	u[8] = u[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:], u[:4])
	for i, at := range []int{9, 14, 19} {
		text[at-1] = '-'
		hex.Encode(text[at:], u[4+2*i:6+2*i])
	}
	text[23] = '-'
	hex.Encode(text[24:], u[10:])
	return string(text[:])
}
