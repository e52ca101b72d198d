package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
)

// The text of a key: [SecretPrefix], the public id, "_", the secret, the checksum.
const (
	SecretPrefix  = "tracon_"
	idBytes       = 10 // 80 bits: nobody looks for an id that is taken
	secretBytes   = 32 // 256 bits
	checksumBytes = 4
)

// letters are lower-case base32 (RFC 4648), so that an underscore parts the text and a
// double click takes the whole of it.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

var (
	idLetters     = letters.EncodedLen(idBytes)
	secretLetters = letters.EncodedLen(secretBytes)
	textLetters   = len(SecretPrefix) + idLetters + 1 + secretLetters + letters.EncodedLen(checksumBytes)
)

// A Hash is what is kept of a secret. The zero Hash is that of none.
type Hash [sha256.Size]byte

// String returns the hash as 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String returns, and nothing else.
func ParseHash(s string) (h Hash, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != s {
		return Hash{}, errors.New("access: not the hash of a key")
	}
	return Hash(b), nil
}

// Equal compares in a time that tells nothing of where the two differ. The zero Hash
// equals none, not even itself.
func (h Hash) Equal(other Hash) bool {
	return subtle.ConstantTimeCompare(h[:], other[:])&^subtle.ConstantTimeCompare(h[:], make([]byte, len(h))) == 1
}

// A Secret is the text of a key. It is shown to whoever asked for the key, once, and is
// kept nowhere: however it is printed or logged, it shows its public id alone. The
// zero Secret is none. See [Secret.Reveal].
type Secret struct {
	id     string
	secret [secretBytes]byte
}

// NewSecret returns a new one, from crypto/rand.
func NewSecret() Secret {
	var s Secret
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // never fails; see crypto/rand
	_, _ = rand.Read(s.secret[:])
	s.id = letters.EncodeToString(id[:])
	return s
}

// ErrSecret: a text is not that of a key, as everybody can see who has it. The text of
// the error shows nothing of it.
var ErrSecret = errors.New("access: this is not the text of a key")

// ParseSecret reads what Reveal returns, and nothing else: no blank, no other case, no
// other bits. The checksum is looked at first.
func ParseSecret(text string) (Secret, error) {
	if len(text) != textLetters || !strings.HasPrefix(text, SecretPrefix) {
		return Secret{}, ErrSecret
	}
	sum := len(text) - letters.EncodedLen(checksumBytes)
	if checksum(text[:sum]) != text[sum:] {
		return Secret{}, ErrSecret
	}
	id, secret, ok := strings.Cut(text[len(SecretPrefix):sum], "_")
	if !ok || !ValidID(id) {
		return Secret{}, ErrSecret
	}
	b, err := letters.DecodeString(secret)
	if err != nil || len(b) != secretBytes || letters.EncodeToString(b) != secret {
		return Secret{}, ErrSecret
	}
	return Secret{id, [secretBytes]byte(b)}, nil
}

// ValidID reports whether s has the form of a key's public id.
func ValidID(s string) bool {
	b, err := letters.DecodeString(s)
	return err == nil && len(b) == idBytes && letters.EncodeToString(b) == s
}

func checksum(text string) string {
	return letters.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// ID returns the public id of the key. It may be shown and logged.
func (s Secret) ID() string { return s.id }

// Hash returns what is kept of s. The id is in it, so that it is that of no other key.
func (s Secret) Hash() Hash {
	if s.id == "" {
		return Hash{}
	}
	return sha256.Sum256(append([]byte("tracon/key/1\n"+s.id+"\n"), s.secret[:]...))
}

// Reveal returns the text: for its owner alone, once. It is never logged.
func (s Secret) Reveal() string {
	if s.id == "" {
		return ""
	}
	text := SecretPrefix + s.id + "_" + letters.EncodeToString(s.secret[:])
	return text + checksum(text)
}

// String returns the prefix and the public id. The same goes for every other way to
// print s.
func (s Secret) String() string { return SecretPrefix + s.id + "_…" }

// Format implements [fmt.Formatter].
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
