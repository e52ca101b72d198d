package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
)

// Keys returns the Authenticator of API keys that are kept in book, sent as
// "Authorization: Bearer tracon_…". It is safe for concurrent use.
func Keys(book access.Finder) Authenticator { return keys{book} }

type keys struct{ book access.Finder }

// Authenticate implements [Authenticator].
func (k keys) Authenticate(r *http.Request) (access.Principal, error) {
	text, ok := Bearer(r)
	if !ok {
		return access.Principal{}, fmt.Errorf("%w: there is none", ErrUnauthenticated)
	}
	p, err := access.Authenticate(r.Context(), k.book, text, time.Now())
	if errors.Is(err, access.ErrCredential) {
		return access.Principal{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return p, err
}

// Bearer returns the token of the request's one Authorization header, and false where
// there is none, or two.
func Bearer(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(given[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t,") {
		return "", false
	}
	return token, true
}
