package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/internal/outbound"
)

// Options say how a registry is asked. The zero Options ask one on the public internet,
// over TLS, without credentials.
type Options struct {
	// Reach is where it may be besides the public internet: "private" for a private
	// network, "loopback" for this machine, which needs no word where the reference
	// says so itself.
	Reach []string

	// PlainHTTP asks the registry of the reference by HTTP without TLS. What comes is
	// still compared with its digest; who was asked, and for a tag what it means, nobody
	// proves then. Credentials are sent only to one on this machine.
	PlainHTTP bool

	// Roots are the authorities that a registry's certificate may be of; nil: the system's.
	Roots *x509.CertPool

	// DockerConfig is a file of credentials as docker login writes it; empty, or one that
	// is not there: none. What helpers it names are started: it must be the user's own.
	DockerConfig string
}

// maxRedirects is how often a request for a part may be sent on.
const maxRedirects = 4

// ErrNotFound is wrapped by the error for an image that the registry does not have, or
// does not show to who asks.
var ErrNotFound = errors.New("registry: there is no such image, or it is not for everybody")

// Pull copies the parts of the image that the reference names into the folder scratch: for
// the platform of i, each compared with what was said of it. A tag is resolved once; what
// it meant is in the [oci.Parts].
//
// # Errors
//
// One that wraps ErrReference, ErrNotFound, or outbound.ErrRefused's text for a registry
// that must not be asked; those of [oci.Fetch].
func Pull(ctx context.Context, reference string, scratch *os.Root, o Options, i oci.Options) (*oci.Parts, error) {
	ref, err := parse(reference)
	if err != nil {
		return nil, err
	}
	s, err := open(ref, o)
	if err != nil {
		return nil, err
	}
	defer s.transport.CloseIdleConnections()
	root, err := s.resolve(ctx)
	if err != nil {
		return nil, s.told(ctx, err)
	}
	parts, err := oci.Fetch(ctx, s, root, scratch, i)
	if err != nil {
		return nil, s.told(ctx, err)
	}
	parts.Name = reference
	if _, tagged := bundle.ParseDigest(ref.Reference); tagged == nil {
		parts.Name = ref.Registry + "/" + ref.Repository + "@" + ref.Reference // whatever tag stood beside it
	}
	return parts, nil
}

// A source is a repository of a registry, as [oci.Fetch] asks it.
type source struct {
	ref       oras.Reference
	repo      *remote.Repository
	transport *outbound.Transport
	meant     string // the digest of what the reference means
	document  []byte // and that itself
	waiting   time.Duration
}

func open(ref oras.Reference, o Options) (*source, error) {
	words := o.Reach
	if here := IsHere(ref.Registry); here && !slices.Contains(words, outbound.Loopback) {
		words = append(slices.Clone(words), outbound.Loopback)
	}
	reach, err := outbound.ParseReach("--reach", words)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	how := outbound.Options{Header: waiting / 2, MaxAnswer: 1 << 40, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}}
	if o.PlainHTTP {
		how.Plain = ref.Host()
	}
	s := &source{ref: ref, transport: reach.Transport(how), waiting: waiting}
	s.repo = &remote.Repository{Reference: ref, PlainHTTP: o.PlainHTTP, ManifestMediaTypes: oci.MediaTypes(), MaxMetadataBytes: oci.MaxDocument}
	client := &auth.Client{
		Client: &http.Client{Transport: retry.NewTransport(s.transport), CheckRedirect: s.redirect},
		Header: http.Header{"User-Agent": {"tracon"}}, Cache: auth.NewCache(), ClientID: "tracon",
	}
	if o.DockerConfig != "" && (!o.PlainHTTP || IsHere(ref.Registry)) {
		if client.Credential, err = fromDocker(o.DockerConfig); err != nil {
			return nil, err
		}
	}
	s.repo.Client = client
	return s, nil
}

// redirect says whether a request is sent on.
func (s *source) redirect(to *http.Request, via []*http.Request) error {
	switch from := via[0].URL; {
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: %s sends a request on and on", outbound.ErrRefused, s.ref.Registry)
	case !s.isPart(via[0]):
		return fmt.Errorf("%w: %s sends a request on to %s; only for a part of an image may it do that", outbound.ErrRefused, from.Host, to.URL.Host)
	case to.URL.Scheme != "https" && (to.URL.Host != s.ref.Host() || from.Scheme != to.URL.Scheme):
		return fmt.Errorf("%w: %s sends a request on to %s without TLS", outbound.ErrRefused, from.Host, to.URL.Host)
	}
	return nil
}

// isPart reports whether the request is one to this registry for a part of the image. A
// part is compared with its digest, wherever it came from; a manifest is what says the
// digests, and where tokens are had credentials are sent.
func (s *source) isPart(r *http.Request) bool {
	named, ok := strings.CutPrefix(r.URL.Path, "/v2/"+s.ref.Repository+"/blobs/")
	_, err := bundle.ParseDigest(named)
	return ok && err == nil && r.URL.Host == s.ref.Host() && r.Method == http.MethodGet
}

// resolve asks what the reference means.
func (s *source) resolve(ctx context.Context) (oci.Descriptor, error) {
	var d ocispec.Descriptor
	r, err := s.watched(ctx, func(ctx context.Context) (r io.ReadCloser, err error) {
		d, r, err = s.repo.Manifests().FetchReference(ctx, s.ref.Reference)
		return r, err
	})
	if err != nil {
		return oci.Descriptor{}, err
	}
	b, err := io.ReadAll(io.LimitReader(r, oci.MaxDocument+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return oci.Descriptor{}, err
	}
	out := oci.Descriptor{MediaType: d.MediaType, Digest: bundle.Digest(sha256.Sum256(b)).String(), Size: int64(len(b))}
	if want := string(d.Digest); len(b) > oci.MaxDocument || want != out.Digest {
		return oci.Descriptor{}, altered(want, out.Digest)
	}
	s.meant, s.document = out.Digest, b
	return out, nil
}

// Open implements [oci.Source].
func (s *source) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.Digest == s.meant {
		return io.NopCloser(bytes.NewReader(s.document)), nil
	}
	what := ocispec.Descriptor{MediaType: d.MediaType, Digest: digest.Digest(d.Digest), Size: d.Size}
	from := s.repo.Blobs().Fetch
	if slices.Contains(oci.MediaTypes(), d.MediaType) {
		from = s.repo.Manifests().Fetch
	}
	return s.watched(ctx, func(ctx context.Context) (io.ReadCloser, error) { return from(ctx, what) })
}
