package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// remote is a server, through the typed client.
type remote struct {
	server   string         // its address, for people
	c        *client.Client // acts for the tenant
	platform *client.Client // acts for the platform where the socket lets us; else it is c
	who      client.Whoami  // that c is
	tenant   string
	given    bool          // the tenant, by a flag
	version  string        // of the server
	limits   bundle.Limits // of a skill that is read here, before the server's own
	folder   string        // for what is put aside here
	progress func(what string) *progress
}

var _ backend = (*remote)(nil)

func (r *remote) Tenant() string { return r.tenant }

// SkillName returns word: a folder is on this machine, and the server does not see it.
func (r *remote) SkillName(_ context.Context, word string) (string, error) { return word, nil }

// sames are the problems that are the errors of this machine, word for word.
var sames = map[client.Code]error{
	client.ContentChanged: admin.ErrChanged, client.ContentPinned: admin.ErrPinned, client.InUse: admin.ErrListed,
	client.TenantDeleted: admin.ErrDeleted, client.RunsUnderWay: admin.ErrUnderWay,
}

// wraps are the problems whose detail tells more than the error which they are.
var wraps = map[client.Code]error{
	client.Conflict: grant.ErrConflict, client.PreconditionFailed: grant.ErrConflict, client.BadContent: bundle.ErrContent, client.Busy: tracon.ErrBusy, client.AuditUnavailable: audit.ErrUnavailable,
	client.ExecutorUnavailable: tracon.ErrExecutorUnavailable, client.Cancelled: tracon.ErrCancelled,
}

// told turns what came back into the error that the same mistake has on this machine:
// the same words, the same exit code. Missing is that for what is not there.
func (r *remote) told(ctx context.Context, err, missing error) error {
	p, ok := errors.AsType[*client.Problem](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok:
		return r.unreachable(err)
	case p.Code == client.NotFound && missing != nil:
		return missing
	case sames[p.Code] != nil:
		return sames[p.Code]
	case wraps[p.Code] != nil:
		return fmt.Errorf("%w: %s", wraps[p.Code], p)
	}
	switch p.Code {
	case client.Unauthenticated:
		return hint(fmt.Errorf("the server %s does not take the key: it is another server's, expired or revoked", r.server), "set TRACON_KEY, or name the file of another with --key-file; who made it sees with `tracon key list` what became of it")
	case client.Forbidden:
		what := strings.TrimPrefix(p.Detail, "access: not allowed: ")
		whose := "take a key whose role has it; `tracon key create --help` lists the roles"
		if strings.HasPrefix(what, "it takes host.") || strings.HasPrefix(what, "it takes tenants.") || strings.HasPrefix(what, "it takes platform.") {
			whose = "take a key of the platform; who has the server's machine makes one with `tracon key create NAME --platform`"
		} else if r.who.Tenant == "" && len(r.who.Roles) > 0 {
			tenant := "TENANT"
			if r.given {
				tenant = quoteWords(r.tenant)
			}
			whose = "take a key of the tenant: the platform's sees nothing of it; `tracon key create NAME --role … --tenant " + tenant + "` makes one"
		}
		return hint(&deniedError{what}, "%s", whose)
	case client.Fixed:
		return hint(errors.New("the host's settings stand in the server's configuration file"), "set `enabled`, `interpreters`, `network` and `require_walls` there")
	case client.RateLimited:
		return hint(fmt.Errorf("the server takes no more requests now: %s", p), "try again in %v", p.RetryAfter)
	}
	if p.Status >= 500 && p.RequestID != "" {
		return hint(fmt.Errorf("the server could not: %s", p), "its log tells more, of the request %s", p.RequestID)
	}
	return errors.New(p.Error())
}

// unreachable adds to the error of a request that no server answered what to do.
func (r *remote) unreachable(err error) error {
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case name:
		return hint(err, "write --server by a name that its certificate has; if it has that name, somebody may stand in between")
	case cert:
		return hint(err, "name the certificates that it may be signed by with --ca-file; if it was trusted before, somebody may stand in between")
	case notTLS:
		return hint(err, "what listens there speaks no TLS")
	}
	return hint(err, "see that `tracon serve` runs there, and that --server is its address")
}

// deniedError says what a key lacks.
type deniedError struct{ what string }

func (e *deniedError) Error() string { return "the key may not do that: " + e.what }
func (e *deniedError) Unwrap() error { return access.ErrDenied }
