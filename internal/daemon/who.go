package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/oidc"
)

// who says who sent a request: by the form of its credential, or, on the socket, by
// who is at the other end.
type who struct {
	keys     httpapi.Authenticator
	book     access.Finder
	oidc     *oidc.Verifier // nil: no tokens are taken
	owner    int            // the user of this process
	failures *limit.Failures
}

// peerKey is where a connection of the socket has its peer's user.
type peerKey struct{}

// Authenticate implements [httpapi.Authenticator]. Where too many credentials of one
// machine did not hold, the next is looked at only if it held before.
func (w *who) Authenticate(r *http.Request) (access.Principal, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return w.AuthenticateAgain(r)
	}
	token, _ := httpapi.Bearer(r)
	_, err := access.ParseSecret(token)
	formed := w.isToken(token) || err == nil
	release, after := w.failures.Check(r.RemoteAddr, token, formed)
	if after > 0 {
		httpapi.Quiet(r.Context()) // it is counted
		return access.Principal{}, &access.TooManyError{After: after}
	}
	defer release()
	p, err := w.AuthenticateAgain(r)
	switch {
	case err == nil:
		w.failures.Held(token)
	case errors.Is(err, httpapi.ErrUnauthenticated):
		w.failures.Failed(r.RemoteAddr, token, formed)
	}
	return p, err
}

// AuthenticateAgain implements [httpapi.Reauthenticator]. It neither asks how many failed
// nor counts: else who guesses would have his own revoked key looked at no more.
func (w *who) AuthenticateAgain(r *http.Request) (access.Principal, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		if peer, ok := r.Context().Value(peerKey{}).(int); ok {
			return w.local(r, peer)
		}
	}
	token, _ := httpapi.Bearer(r)
	if !w.isToken(token) {
		return w.keys.Authenticate(r)
	}
	p, err := w.oidc.Principal(r.Context(), token)
	if err == nil {
		err = access.Admit(r.Context(), w.book, p)
	}
	if errors.Is(err, oidc.ErrToken) || errors.Is(err, access.ErrCredential) {
		err = fmt.Errorf("%w: %w", httpapi.ErrUnauthenticated, err)
	}
	return p, err
}

func (w *who) isToken(token string) bool { return w.oidc != nil && oidc.IsToken(token) }

// local is the operator on this machine, who has everything that the verbs have on
// the data folder itself: within the tenant that the request names, else as the
// platform. What came through a proxy is not of this machine.
func (w *who) local(r *http.Request, peer int) (access.Principal, error) {
	if forwarded(r.Header) {
		return access.Principal{}, fmt.Errorf("%w: it came to the socket through a proxy", httpapi.ErrUnauthenticated)
	}
	if peer != w.owner && peer != 0 {
		return access.Principal{}, fmt.Errorf("%w: the user %d is at the other end of the socket", httpapi.ErrUnauthenticated, peer)
	}
	p := access.Principal{Actor: userName(peer), Roles: []access.Role{access.Platform}}
	switch named := r.Header.Values(client.TenantHeader); {
	case len(named) > 1 || len(named) == 1 && gate.CheckTenant(named[0]) != nil:
		return access.Principal{}, fmt.Errorf("%w: the tenant is named in no usable way", httpapi.ErrUnauthenticated)
	case len(named) == 1:
		p.Tenant, p.Roles = named[0], []access.Role{access.Admin}
	}
	return p, nil
}

// operators are the limits where who asks at the socket is the platform, in whichever
// tenant: what a tenant floods does not keep its operator out, nor the other way round.
type operators struct{ *limit.Limits }

// Enter implements [httpapi.Limiter].
func (o operators) Enter(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration) {
	if peer, ok := ctx.Value(peerKey{}).(int); ok && p.Key == "" && p.Actor == userName(peer) {
		p.Tenant = ""
	}
	return o.Limits.Enter(ctx, p, run)
}

// forwarded reports whether a proxy says that the request is somebody else's.
func forwarded(h http.Header) bool {
	for name := range h {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && u.Username != "" {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}

// newWho returns who says who asks in h.
func newWho(h access.Finder, tokens *oidc.Verifier, f *limit.Failures) *who {
	return &who{keys: httpapi.Keys(h), book: h, oidc: tokens, owner: os.Geteuid(), failures: f}
}

// fromHere keeps browsers from being led to a server of this machine by a name that
// means another today: without a credential, the name that was asked for must be one
// of this machine.
func fromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Authorization")) == 0 && !hereHost(r.Host) {
			httpapi.Refuse(w, r, client.Forbidden, "without a credential this server answers to the names of this machine alone")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hereHost(host string) bool {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// withPeer notes who is at the other end of a connection of the socket.
func withPeer(ctx context.Context, uid int) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}
