// Package witness cosigns checkpoints: who has seen a log with so many entries
// never signs that it has fewer, or others. It speaks C2SP's tlog-witness
// protocol and cosignature/v1, so that each side works with those of others.
package witness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cosigns is the type of a key that cosigns: Ed25519 with the time (C2SP signed-note).
const cosigns = 0x04

// ErrKey is wrapped by the error for a text that is no key of a witness.
var ErrKey = errors.New("not the key of a witness")

// A PublicKey is that of a witness, as name+hash+data.
type PublicKey struct {
	text string
	name string
	hash uint32
	key  ed25519.PublicKey
}

// Name returns the name of the witness.
func (k PublicKey) Name() string { return k.name }

// String returns the key as [ParsePublicKey] reads it.
func (k PublicKey) String() string { return k.text }

// ParsePublicKey reads the key of a witness. Its errors wrap ErrKey.
func ParsePublicKey(text string) (PublicKey, error) {
	bad := fmt.Errorf("%w: %q; it has the form name+hash+data, and its data begins with BA", ErrKey, text)
	parts := strings.SplitN(text, "+", 3)
	if len(parts) != 3 || parts[0] == "" || strings.ContainsAny(parts[0], " \t\n\r") {
		return PublicKey{}, bad
	}
	data, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(data) != 1+ed25519.PublicKeySize || data[0] != cosigns {
		return PublicKey{}, bad
	}
	k := publicKey(parts[0], data[1:])
	if k.text != text {
		return PublicKey{}, bad
	}
	return k, nil
}

func publicKey(name string, key ed25519.PublicKey) PublicKey {
	data := append([]byte{cosigns}, key...)
	sum := sha256.Sum256(append([]byte(name+"\n"), data...))
	hash := binary.BigEndian.Uint32(sum[:])
	return PublicKey{fmt.Sprintf("%s+%08x+%s", name, hash, base64.StdEncoding.EncodeToString(data)), name, hash, bytes.Clone(key)}
}

// A SigningKey is that of a witness. The zero SigningKey signs nothing.
type SigningKey struct {
	public PublicKey
	key    ed25519.PrivateKey
}

// NewSigningKey makes a key for a witness of that name.
func NewSigningKey(name string) (SigningKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return SigningKey{}, err
	}
	k := SigningKey{publicKey(name, public), private}
	if _, err := ParsePublicKey(k.public.text); err != nil {
		return SigningKey{}, err
	}
	return k, nil
}

const privatePrefix = "PRIVATE+WITNESS+"

// Secret returns the key as text.
func (k SigningKey) Secret() string {
	return privatePrefix + k.public.name + "+" + hex.EncodeToString(k.key.Seed())
}

// ParseSigningKey reads what [SigningKey.Secret] writes.
func ParseSigningKey(text string) (SigningKey, error) {
	name, seed, ok := strings.Cut(strings.TrimPrefix(text, privatePrefix), "+")
	data, err := hex.DecodeString(seed)
	if !strings.HasPrefix(text, privatePrefix) || !ok || err != nil || len(data) != ed25519.SeedSize {
		return SigningKey{}, fmt.Errorf("%w: a signing key has the form %sname+data", ErrKey, privatePrefix)
	}
	private := ed25519.NewKeyFromSeed(data)
	return SigningKey{publicKey(name, private.Public().(ed25519.PublicKey)), private}, nil
}

// Public returns the public key.
func (k SigningKey) Public() PublicKey { return k.public }

// String returns the public key, so that the secret is in no message.
func (k SigningKey) String() string { return k.public.text }

func message(text string, at int64) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text)
}

// cosign returns the line of a cosignature under the text of a note.
func (k SigningKey) cosign(text string, at time.Time) string {
	b := binary.BigEndian.AppendUint32(nil, k.public.hash)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	b = append(b, ed25519.Sign(k.key, message(text, at.Unix()))...)
	return "— " + k.public.name + " " + base64.StdEncoding.EncodeToString(b) + "\n"
}

// verify returns when the witness cosigned text with that line.
func (k PublicKey) verify(text, line string) (time.Time, error) {
	bad := fmt.Errorf("the line %q is no cosignature of %s that holds", line, k.name)
	sig, ok := strings.CutPrefix(line, "— "+k.name+" ")
	if !ok {
		return time.Time{}, bad
	}
	b, err := base64.StdEncoding.Strict().DecodeString(sig)
	if err != nil || len(b) != 4+8+ed25519.SignatureSize || binary.BigEndian.Uint32(b) != k.hash {
		return time.Time{}, bad
	}
	at := int64(binary.BigEndian.Uint64(b[4:]))
	if at <= 0 || !ed25519.Verify(k.key, message(text, at), b[12:]) {
		return time.Time{}, bad
	}
	return time.Unix(at, 0), nil
}

// split returns the text of a signed note, with its last line feed, and its
// signatures.
func split(note []byte) (text string, lines []string) {
	head, sigs, _ := strings.Cut(string(note), "\n\n")
	return head + "\n", strings.Split(strings.TrimSuffix(sigs, "\n"), "\n")
}

// Cosigned returns when k cosigned the checkpoint in note; false where it did not.
func (k PublicKey) Cosigned(note []byte) (time.Time, bool) {
	text, lines := split(note)
	for _, line := range lines {
		if at, err := k.verify(text, line); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

func plainNumber(text string) (uint64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return uint64(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}
