package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	oras "oras.land/oras-go/v2/registry"

	"github.com/tracon-go/tracon/bundle"
)

// ErrReference is wrapped by the error for a text that names no image.
var ErrReference = errors.New("registry: it names no image")

// parse reads a reference: REGISTRY/REPOSITORY with :TAG or @DIGEST. Nothing of it is
// guessed, but that Docker's own images lie in library/.
func parse(text string) (oras.Reference, error) {
	first, rest, _ := strings.Cut(text, "/")
	if rest == "" || !strings.ContainsAny(first, ".:") && first != "localhost" {
		return oras.Reference{}, fmt.Errorf("%w: %q says no registry; write it out, such as docker.io/library/python:3.12", ErrReference, text)
	}
	ref, err := oras.ParseReference(text)
	if err != nil {
		return ref, fmt.Errorf("%w: %q: %w", ErrReference, text, err)
	}
	if ref.Reference == "" {
		return ref, fmt.Errorf("%w: %q says neither which tag nor which digest; write one behind it, such as :3.12 or @sha256:…", ErrReference, text)
	}
	if _, err := bundle.ParseDigest(ref.Reference); strings.Contains(ref.Reference, ":") && err != nil {
		return ref, fmt.Errorf("%w: %q has a digest that is none by SHA-256", ErrReference, text)
	}
	if ref.Registry == "docker.io" && !strings.Contains(ref.Repository, "/") {
		ref.Repository = "library/" + ref.Repository
	}
	return ref, nil
}

// IsHere reports whether the reference names a registry on this machine: such a one is
// asked by plain HTTP unless somebody says otherwise.
func IsHere(reference string) bool {
	host, _, _ := strings.Cut(reference, "/")
	if at, err := netip.ParseAddrPort(host); err == nil {
		return at.Addr().Unmap().IsLoopback()
	}
	name, _, _ := strings.Cut(host, ":")
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return name == "localhost" || err == nil && at.Unmap().IsLoopback()
}
