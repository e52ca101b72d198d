package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// A Digest is a SHA-256. The zero Digest is the digest of nothing: it equals
// that of no bundle and no file, and no grant may pin it.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// ErrDigest is wrapped by the error of [ParseDigest] for a text that is no digest.
var ErrDigest = errors.New("bundle: not a digest")

// Sum returns the digest of data.
func Sum(data []byte) Digest { return sha256.Sum256(data) }

// IsZero reports whether d is the zero Digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns "sha256:" and 64 lower-case hex digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// Hex returns the 64 lower-case hex digits without the prefix.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what [Digest.String] writes. Nothing else is read: no upper
// case, no missing prefix, no abbreviation, and not the zero Digest, so that
// one digest has one text.
func ParseDigest(s string) (Digest, error) {
	rest, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(rest) != hex.EncodedLen(sha256.Size) || strings.ToLower(rest) != rest {
		return Digest{}, fmt.Errorf("%w: %q (want %q and 64 lower-case hex digits)", ErrDigest, s, digestPrefix)
	}
	var d Digest
	if _, err := hex.Decode(d[:], []byte(rest)); err != nil {
		return Digest{}, fmt.Errorf("%w: %q: %v", ErrDigest, s, err)
	}
	if d.IsZero() {
		return Digest{}, fmt.Errorf("%w: %q is the digest of nothing", ErrDigest, s)
	}
	return d, nil
}

// MarshalText writes [Digest.String], and nothing for the zero Digest.
func (d Digest) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what [Digest.MarshalText] writes.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*d = Digest{}
		return nil
	}
	p, err := ParseDigest(string(b))
	if err != nil {
		return err
	}
	*d = p
	return nil
}
