package mask

import (
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
)

// KeyLabel stands for a key.
const KeyLabel = "[tracon key]"

// The text of a key is that of access.Secret, whose tests hold the two together:
// the prefix, a public id, "_", the secret and its checksum.
const (
	keyPrefix = "tracon_"
	keyID     = 16
	keySum    = 7
	keyBytes  = len(keyPrefix) + keyID + 1 + 52 + keySum
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// likeKey reports whether b, up to the length of a key, has a key's letters where one
// has them.
func likeKey(b []byte) bool {
	for i, c := range b[:min(len(b), keyBytes)] {
		switch {
		case i < len(keyPrefix):
			if c != keyPrefix[i] {
				return false
			}
		case i == len(keyPrefix)+keyID:
			if c != '_' {
				return false
			}
		case (c < 'a' || c > 'z') && (c < '2' || c > '7'):
			return false
		}
	}
	return true
}

// isKey reports whether b begins with a key whose checksum holds.
func isKey(b []byte) bool {
	if len(b) < keyBytes || !likeKey(b) {
		return false
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b[:keyBytes-keySum]))
	return letters.EncodeToString(sum) == string(b[keyBytes-keySum:keyBytes])
}
