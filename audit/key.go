package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ErrKey is wrapped by the error for a text that is no key.
var ErrKey = errors.New("audit: not a key")

// A SigningKey signs a log's checkpoints, with Ed25519. It belongs to one
// origin, which is the log's name. The zero SigningKey signs nothing.
type SigningKey struct {
	signer note.Signer
	text   string
	public PublicKey
}

// NewSigningKey makes a key for the log of that name: without a blank or a plus sign.
func NewSigningKey(origin string) (SigningKey, error) {
	text, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return SigningKey{}, err
	}
	return ParseSigningKey(text)
}

// ParseSigningKey reads what [SigningKey.Secret] writes. Its errors wrap ErrKey
// and hold nothing of the text.
func ParseSigningKey(text string) (SigningKey, error) {
	bad := fmt.Errorf("%w: a signing key has the form PRIVATE+KEY+name+hash+data", ErrKey)
	signer, err := note.NewSigner(text)
	if err != nil {
		return SigningKey{}, bad
	}
	parts := strings.SplitN(text, "+", 5) // the data, in base64, may hold more of them
	data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return SigningKey{}, bad
	}
	public := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return SigningKey{}, bad
	}
	return SigningKey{signer, text, PublicKey(vkey)}, nil
}

// Origin returns the name of the log.
func (k SigningKey) Origin() string { return k.signer.Name() }

// Public returns the key by which others know what k signed.
func (k SigningKey) Public() PublicKey { return k.public }

// Secret returns the key as text. Whoever has it can sign another log as this one.
func (k SigningKey) Secret() string { return k.text }

// IsZero reports whether k is the zero SigningKey.
func (k SigningKey) IsZero() bool { return k.signer == nil }

// String returns the public key, so that the secret is in no message.
func (k SigningKey) String() string { return string(k.public) }

// LogValue keeps the secret out of logs.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// A PublicKey is the text name+hash+data of a key that verifies: C2SP calls it a vkey.
type PublicKey string

// ParsePublicKey reads a public key. Its errors wrap ErrKey.
func ParsePublicKey(text string) (PublicKey, error) {
	if _, err := note.NewVerifier(text); err != nil {
		return "", fmt.Errorf("%w: %q has not the form name+hash+data", ErrKey, text)
	}
	return PublicKey(text), nil
}

// Origin returns the name of the log, or of the witness, that signs with it.
func (k PublicKey) Origin() string {
	name, _, _ := strings.Cut(string(k), "+")
	return name
}

// verifiers returns the verifiers of keys, each of which must have been parsed.
func verifiers(keys []PublicKey) (note.Verifiers, error) {
	var list []note.Verifier
	seen := map[PublicKey]bool{}
	for _, k := range keys {
		if seen[k] {
			continue // twice is ambiguous to note
		}
		seen[k] = true
		v, err := note.NewVerifier(string(k))
		if err != nil {
			return nil, fmt.Errorf("%w: %q", ErrKey, k)
		}
		list = append(list, v)
	}
	return note.VerifierList(list...), nil
}

const rotationDomain = "tracon/key-rotation/1"

// Rotation returns a statement, signed by both keys, that next signs the log
// from now on instead of k.
func (k SigningKey) Rotation(next SigningKey) (string, error) {
	if k.IsZero() || next.IsZero() || k.Origin() != next.Origin() || k.public == next.public {
		return "", fmt.Errorf("%w: a rotation is between two keys of one log", ErrKey)
	}
	text := strings.Join([]string{rotationDomain, k.Origin(), string(k.public), string(next.public), ""}, "\n")
	signed, err := note.Sign(&note.Note{Text: text}, k.signer, next.signer)
	return string(signed), err
}

// rotationOf reports whether statement is about a key of the log of that name.
func rotationOf(statement, origin string) bool {
	return strings.HasPrefix(statement, rotationDomain+"\n"+origin+"\n")
}

// CheckRotation returns the key to which statement hands over from key.
//
// # Errors
//
// ErrUnsigned for what is not signed by both.
func CheckRotation(statement string, key PublicKey) (PublicKey, error) {
	text, _, _ := strings.Cut(statement, "\n\n")
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] != rotationDomain || lines[1] != key.Origin() || lines[2] != string(key) {
		return "", fmt.Errorf("%w: it is no rotation from the key %s", ErrUnsigned, key)
	}
	next, err := ParsePublicKey(lines[3])
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	for _, k := range []PublicKey{key, next} {
		known, err := verifiers([]PublicKey{k})
		if err != nil {
			return "", err
		}
		if _, err := note.Open([]byte(statement), known); err != nil {
			return "", fmt.Errorf("%w: the rotation has no signature of %s", ErrUnsigned, k)
		}
	}
	if next.Origin() != key.Origin() || next == key {
		return "", fmt.Errorf("%w: a rotation is between two keys of one log", ErrUnsigned)
	}
	return next, nil
}
