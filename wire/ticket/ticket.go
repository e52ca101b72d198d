package ticket

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// Life is how long a ticket holds, and Skew how far the clocks of a host and a runner
// may be apart.
const (
	Life = 2 * time.Minute
	Skew = 5 * time.Second
)

const (
	prefix  = "tracon-ticket-1."
	domain  = "tracon/ticket/1\n"
	maxText = 512 // bytes of a name
	fixed   = 32 + 32 + 8 + 8 + 16
	maxSize = 3*(2+maxText) + fixed
)

// ErrForm is wrapped by the error for what is not of a ticket's form.
var ErrForm = errors.New("ticket: not of its form")

// Terms are what a ticket is signed for.
type Terms struct {
	Runner  string        // name of the runner, as its info has it
	Tenant  string        // for which the run is
	Run     string        // id of the run at the host
	Digest  bundle.Digest // of the closure
	Request bundle.Digest // of everything that is asked for: see wire.Run.Commitment
}

// A ticket is one whose signature nobody has looked at.
type ticket struct {
	Terms
	signed, ends time.Time // in microseconds
	nonce        [16]byte
}

// payload returns the bytes that are signed, without the domain.
func (t ticket) payload() ([]byte, error) {
	var b []byte
	for _, text := range []string{t.Runner, t.Tenant, t.Run} {
		if text == "" || len(text) > maxText {
			return nil, fmt.Errorf("%w: a name of %d bytes, want 1 to %d", ErrForm, len(text), maxText)
		}
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
	}
	b = append(append(b, t.Digest[:]...), t.Request[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.signed.UnixMicro()))
	b = binary.BigEndian.AppendUint64(b, uint64(t.ends.UnixMicro()))
	return append(b, t.nonce[:]...), nil
}

// read returns what the text says, the bytes that are signed, and the signature. It
// trusts nothing of them.
func read(text string) (t ticket, payload, signature []byte, err error) {
	bad := func(what string) (ticket, []byte, []byte, error) {
		return ticket{}, nil, nil, fmt.Errorf("%w: %s", ErrForm, what)
	}
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(text) > len(prefix)+base64.RawURLEncoding.EncodedLen(maxSize)+1+base64.RawURLEncoding.EncodedLen(ed25519.SignatureSize) {
		return bad("it does not begin as one, or is too long")
	}
	first, second, ok := strings.Cut(rest, ".")
	if !ok || strings.ContainsAny(rest, "\r\n") { // which base64 reads over
		return bad("it has not two parts")
	}
	strict := base64.RawURLEncoding.Strict()
	if payload, err = strict.DecodeString(first); err != nil {
		return bad("its first part is not base64")
	}
	if signature, err = strict.DecodeString(second); err != nil || len(signature) != ed25519.SignatureSize {
		return bad("its second part is no signature")
	}
	b := payload
	for _, field := range []*string{&t.Runner, &t.Tenant, &t.Run} {
		if len(b) < 2 {
			return bad("it ends early")
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; n == 0 || n > maxText || n > len(b) {
			return bad("the length of a name")
		}
		*field, b = string(b[:n]), b[n:]
	}
	if len(b) != fixed {
		return bad("its length")
	}
	copy(t.Digest[:], b)
	copy(t.Request[:], b[32:])
	t.signed = time.UnixMicro(int64(binary.BigEndian.Uint64(b[64:])))
	t.ends = time.UnixMicro(int64(binary.BigEndian.Uint64(b[72:])))
	copy(t.nonce[:], b[80:])
	return t, payload, signature, nil
}

// A Signer signs tickets. It is safe for concurrent use; the zero Signer signs none.
type Signer struct{ key ed25519.PrivateKey }

// NewSigner returns one with the key.
func NewSigner(key ed25519.PrivateKey) (*Signer, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("ticket: not an Ed25519 private key")
	}
	return &Signer{key}, nil
}

// Sign returns a ticket for the terms that holds from now on for [Life].
//
// # Errors
//
// One that wraps ErrForm, where a name is empty or has more than 512 bytes.
func (s *Signer) Sign(terms Terms) (string, error) {
	if s == nil || len(s.key) != ed25519.PrivateKeySize {
		return "", errors.New("ticket: there is no key to sign with")
	}
	now := time.Now()
	t := ticket{Terms: terms, signed: now, ends: now.Add(Life)}
	_, _ = rand.Read(t.nonce[:]) // it never fails
	return s.seal(t)
}

func (s *Signer) seal(t ticket) (string, error) {
	payload, err := t.payload()
	if err != nil {
		return "", err
	}
	signature := ed25519.Sign(s.key, append([]byte(domain), payload...))
	return prefix + base64.RawURLEncoding.EncodeToString(payload) + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
