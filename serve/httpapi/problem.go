package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/toolcall"
)

// problem makes a problem of the code, with a detail for people.
func problem(code client.Code, detail string) *client.Problem { return client.NewProblem(code, detail) }

// notFound is the one answer for what is not there and for what is somebody else's.
func notFound() *client.Problem { return problem(client.NotFound, "there is no such thing") }

// known are the errors that have a code, the narrow ones before those that they wrap.
// Detail is what a stranger reads; empty: the error's own text, which is about nothing
// but what was sent.
var known = []struct {
	err    error
	code   client.Code
	detail string
}{
	{ErrUnauthenticated, client.Unauthenticated, "a credential that holds is needed: Authorization: Bearer …"},
	{admin.ErrChanged, client.ContentChanged, "the content is not the one that was reviewed; review it again"},
	{admin.ErrPinned, client.ContentPinned, "a grant in force pins other content; look at the difference, then say replace"},
	{admin.ErrListed, client.InUse, "the allow-list names the runtime; list another in its place first"},
	{admin.ErrNamed, client.Conflict, "the name belongs to another root file system; say replace"},
	{admin.ErrDeleted, client.TenantDeleted, "the tenant was deleted, and its name is not given again"},
	{admin.ErrUnderWay, client.RunsUnderWay, "runs of the tenant are under way; switch it off, wait for them or cancel them, and say it again"},
	{access.ErrQuota, client.QuotaExceeded, ""},
	{access.ErrInvalid, client.Invalid, ""},
	{access.ErrUnavailable, client.Unavailable, "what is kept cannot be reached"},
	{params.ErrPrecondition, client.PreconditionFailed, "it was changed since; get it again"},
	{grant.ErrConflict, client.Conflict, "another change came first; look again"},
	{audit.ErrUnavailable, client.AuditUnavailable, "the log cannot be written, so nothing was done"},
	{audit.ErrNoEntry, client.NotFound, "there is no such thing"},
	{grant.ErrNotFound, client.NotFound, "there is no such thing"},
	{toolcall.ErrNotFound, client.NotFound, "there is no such thing"},
	{runs.ErrNotFound, client.NotFound, "there is no such thing"},
	{gate.ErrUnknown, client.NotFound, "there is no such thing"},
	{gate.ErrPolicy, client.Invalid, ""},
	{grant.ErrRef, client.Invalid, ""},
	{bundle.ErrContent, client.BadContent, "the skill's content cannot be used; lint tells why"},
	{context.Canceled, client.Unavailable, "the request was given up"},
	{context.DeadlineExceeded, client.Unavailable, "it took too long"},
}

// problemOf says in public words what err is. What has no words of its own is told to
// the log, and to the stranger as internal.
func (s *server) problemOf(ctx context.Context, err error) *client.Problem {
	c := callOf(ctx)
	if p, ok := errors.AsType[*client.Problem](err); ok {
		told := *p
		told.RequestID = c.id
		return &told
	}
	code, detail := client.Internal, "the operator's log tells more, by the request's id"
	for _, k := range known {
		if !errors.Is(err, k.err) {
			continue
		}
		code, detail = k.code, k.detail
		if detail == "" {
			detail = err.Error()
		}
		break
	}
	if errors.Is(err, access.ErrDenied) {
		code, detail = client.Forbidden, err.Error()
	}
	// A store that is away says so in its own words, which have no code.
	if code == client.Internal && s.Log.Ready(ctx) != nil {
		code, detail = client.Unavailable, "what is kept cannot be reached now; try again later"
	}
	if code.Status() >= 500 && !errors.Is(err, context.Canceled) {
		s.Logger.ErrorContext(ctx, "a request failed", "request", c.id, "operation", c.operation, "err", err)
	}
	p := problem(code, detail)
	p.RequestID = c.id
	return p
}

// refuse writes the problem.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	write(w, r, s.problemOf(r.Context(), err))
}

// codes are those of the library's own refusals, which come before any handler.
var codes = map[int]client.Code{
	400: client.BadRequest, 406: client.NotAcceptable, 408: client.Timeout, 413: client.TooLarge,
	415: client.UnsupportedMediaType, 422: client.Invalid,
}

// closedProblem turns the library's refusals into ours: a code, and no value that was
// sent.
func (s *server) closedProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	code, ok := codes[m.Status]
	if !ok {
		return s.problemOf(ctx.Context(), m), nil
	}
	p := problem(code, m.Detail)
	p.RequestID = callOf(ctx.Context()).id
	for i, e := range m.Errors {
		if i == 20 {
			break
		}
		p.Errors = append(p.Errors, client.Wrong{Location: audit.Clip(e.Location), Message: audit.Clip(e.Message)})
	}
	return p, nil
}
