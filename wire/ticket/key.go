package ticket

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"

	"github.com/tracon-go/tracon/bundle"
)

// ReadPrivateKey reads an Ed25519 key from PEM (PKCS #8), as `openssl genpkey
// -algorithm ed25519` writes it. Nothing may stand behind it.
func ReadPrivateKey(text []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("ticket: want one PRIVATE KEY in PEM, such as `openssl genpkey -algorithm ed25519` writes")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := any.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("ticket: the private key is not one of Ed25519")
	}
	return key, nil
}

// Fingerprint names a key that tickets are signed with, for people to compare: the digest
// of its public half.
func Fingerprint(key ed25519.PublicKey) string { return bundle.Sum(key).String() }

// ReadPublicKeys reads one or more Ed25519 keys from PEM, as `openssl pkey -pubout`
// writes them.
func ReadPublicKeys(text []byte) (keys []ed25519.PublicKey, err error) {
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "PUBLIC KEY" {
			return nil, errors.New("ticket: want PUBLIC KEY in PEM alone, such as `openssl pkey -pubout` writes")
		}
		any, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, ok := any.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, errors.New("ticket: a public key is not one of Ed25519")
		}
		keys, text = append(keys, key), rest
	}
	if len(keys) == 0 {
		return nil, errors.New("ticket: there is no public key")
	}
	return keys, nil
}
