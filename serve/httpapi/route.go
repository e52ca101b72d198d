package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

// call is what is known of a request under way.
type call struct {
	id        string
	operation string
	principal access.Principal
	request   *http.Request
	writer    http.ResponseWriter
	quiet     bool   // see Quiet
	leave     func() // tells the Limiter that it is answered; nil: nobody wants to know
	sent      func() // gives back the place of a large body, or answer; nil: it has none
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the request under way; an empty one where there is none.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// RequestID returns the id of the request under way, empty where there is none.
func RequestID(ctx context.Context) string { return callOf(ctx).id }

type routeKey struct{}

// WithRoute returns a context in which the API notes which route answers; see [Route].
// It is for who measures requests from outside.
func WithRoute(ctx context.Context) context.Context {
	return context.WithValue(ctx, routeKey{}, new(string))
}

// Route returns the route that answered, as the document has it: one of a closed set,
// such as /v1/grants/{grant}. It is empty where none did.
func Route(ctx context.Context) string {
	if noted, ok := ctx.Value(routeKey{}).(*string); ok {
		return *noted
	}
	return ""
}

// A need says who may call an operation.
type need struct {
	open bool                // who has no credential too
	any  bool                // everybody with a credential
	may  []access.Permission // who may do one of these
}

var (
	openToAll  = need{open: true}
	anyoneSeen = need{any: true}
)

// may is the need of one of the permissions. Those of tenants go to tenants'
// principals alone and those of the platform to its own: access.Principal sees to it.
func may(what ...access.Permission) need { return need{may: what} }

// check says why p may not, or nil.
func (n need) check(ctx context.Context, a access.Authorizer, p access.Principal) error {
	if n.any {
		return nil
	}
	var told error
	for _, what := range n.may {
		err := access.Check(ctx, a, p, what)
		if err == nil {
			return nil
		}
		// The platform's permissions are nothing that a tenant's key could have, nor the
		// other way round: what is told is what the asker could be given.
		if told == nil || slices.Contains(access.Platform.Permissions(), what) == (p.Tenant == "") {
			told = err
		}
	}
	if told == nil {
		return access.ErrDenied
	}
	return told
}

// An operation is one entry of the API.
type operation struct {
	id, method, path string
	tag, summary     string
	about            string // more, where the summary does not say it
	need             need
	change           bool  // of what exists: takes If-Match
	status           int   // of success; zero: 200, or 204 where there is no body
	maxBody          int64 // bytes; zero: 256 KiB
	large            bool  // few raw bodies, and few over 256 KiB, are taken in at once; see uploads
	raw              bool  // the handler reads the body itself, of the types in body
	body             *huma.RequestBody
	answers          map[string]*huma.Response // where the answer is no JSON
}

// route registers op. The handler is called with a principal that may do it.
func route[I, O any](s *server, op operation, handle func(ctx context.Context, p access.Principal, in *I) (*O, error)) {
	h := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.about,
		DefaultStatus: op.status, Metadata: map[string]any{"operation": op}, RequestBody: op.body,
		// The body was read, with a deadline, before the library sees it; this takes the deadline away.
		BodyReadTimeout: -1, MaxBodyBytes: -1,
		Responses: op.answers,
	}
	if h.Responses == nil {
		h.Responses = map[string]*huma.Response{}
	}
	schema := s.api.OpenAPI().Components.Schemas.Schema(problemType, true, "Problem")
	h.Responses["default"] = &huma.Response{Description: "a problem", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}}}
	h.Extensions = map[string]any{"x-tracon-permission": op.need.words()}
	if !op.need.open {
		h.Security = []map[string][]string{{"key": {}}}
	}
	huma.Register(s.api, h, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, callOf(ctx).principal, in)
		if err != nil {
			return nil, s.told(ctx, err)
		}
		return out, nil
	})
}

// told is the error as the library writes it: the problem, with the headers that go
// with it.
func (s *server) told(ctx context.Context, err error) error {
	p := s.problemOf(ctx, err)
	if p.Status == http.StatusTooManyRequests && callOf(ctx).writer.Header().Get("Retry-After") == "" {
		callOf(ctx).writer.Header().Set("Retry-After", "1")
	}
	return p
}

// words says who may, for the document.
func (n need) words() []string {
	switch {
	case n.open:
		return []string{"none: open to all"}
	case n.any:
		return []string{"any credential"}
	}
	var list []string
	for _, what := range n.may {
		list = append(list, string(what))
	}
	return list
}

// enter stands in front of every operation: who asks, whether that one may, and
// whether what was sent can be read at all.
func (s *server) enter(ctx huma.Context, next func(huma.Context)) {
	op, ok := ctx.Operation().Metadata["operation"].(operation)
	r, w := humago.Unwrap(ctx)
	c := callOf(r.Context())
	if !ok {
		s.refuse(w, r, notFound())
		return
	}
	c.operation, c.request, c.writer = op.id, r, w
	if noted, ok := r.Context().Value(routeKey{}).(*string); ok {
		*noted = op.path
	}
	defer func() {
		for _, leave := range []func(){c.sent, c.leave} {
			if leave != nil {
				leave()
			}
		}
	}()
	if err := s.admit(op, w, r, c); err != nil {
		s.refuse(w, r, err)
		return
	}
	next(ctx)
}

func (s *server) admit(op operation, w http.ResponseWriter, r *http.Request, c *call) error {
	if !op.need.open {
		p, err := s.authenticate(r, s.Authenticator.Authenticate)
		if err != nil {
			return err
		}
		c.principal = p
		if err := s.limit(op, w, r, c); err != nil {
			return err
		}
		if err := op.need.check(r.Context(), s.Authorizer, p); err != nil {
			return err
		}
	}
	if err := checkQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if op.change {
		if err := params.WantsMatch(r.Header); err != nil {
			return err
		}
	}
	if op.large && (op.raw || r.ContentLength < 0 || r.ContentLength > DefaultMaxBody) {
		var err error
		if c.sent, err = s.uploads.enter(c.principal.Tenant); err != nil {
			return err
		}
	}
	return readBody(op, w, r)
}

// authenticate has look say who it is. One header alone is looked at; two credentials are
// none.
func (s *server) authenticate(r *http.Request, look func(*http.Request) (access.Principal, error)) (access.Principal, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return access.Principal{}, ErrUnauthenticated
	}
	p, err := look(r)
	if many, ok := errors.AsType[*access.TooManyError](err); ok {
		return access.Principal{}, tooMany(callOf(r.Context()).writer, many.After)
	}
	if err != nil && !errors.Is(err, ErrUnauthenticated) && !errors.Is(err, context.Canceled) {
		s.Logger.Error("who asks could not be found out", "request", RequestID(r.Context()), "err", err)
		return access.Principal{}, problem(client.Unavailable, "who asks cannot be found out now")
	}
	if err == nil && p.Actor == "" {
		err = ErrUnauthenticated
	}
	return p, err
}

// limit asks the Limiter, and says when to come again.
func (s *server) limit(op operation, w http.ResponseWriter, r *http.Request, c *call) error {
	if s.Limiter == nil {
		return nil
	}
	var after time.Duration
	c.leave, after = s.Limiter.Enter(r.Context(), c.principal, op.method == http.MethodPost && op.path == "/v1/runs")
	if c.leave != nil {
		return nil
	}
	return tooMany(w, after)
}

// tooMany says when to come again.
func tooMany(w http.ResponseWriter, after time.Duration) *client.Problem {
	w.Header().Set("Retry-After", strconv.Itoa(max(int((after+time.Second-1)/time.Second), 1)))
	return problem(client.RateLimited, "too many requests; Retry-After says when to send the next")
}

// checkQuery refuses a query that two readers may take for two: one that cannot be
// parsed, and a parameter that stands twice.
func checkQuery(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return problem(client.BadRequest, "the query cannot be read")
	}
	for _, list := range values {
		if len(list) > 1 {
			return problem(client.BadRequest, "a parameter stands twice in the query")
		}
	}
	return nil
}

// readBody reads and bounds the body of a JSON operation, so that what the library
// decodes is in memory, and that of a raw one is bounded.
func readBody(op operation, w http.ResponseWriter, r *http.Request) error {
	most := op.maxBody
	if most == 0 {
		most = DefaultMaxBody
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return problem(client.UnsupportedMediaType, "a body is sent as it is, without an encoding")
	}
	if op.body != nil && op.raw {
		if err := wantsType(r.Header, op.body); err != nil {
			return err
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		return nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if r.ContentLength != 0 {
			return problem(client.BadRequest, "a GET has no body")
		}
		return nil
	}
	if r.ContentLength == 0 {
		return nil
	}
	if err := wantsJSON(r.Header); err != nil {
		return err
	}
	// Where the server's connection has no deadlines, its own limits hold.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(DefaultBodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return bodyProblem(err)
	}
	_ = control.SetReadDeadline(time.Time{}) // it would end a call that runs longer
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// bodyProblem says why a body could not be read.
func bodyProblem(err error) *client.Problem {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(client.TooLarge, "the body is too large")
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return problem(client.Timeout, "the body came too slowly")
	}
	return problem(client.BadRequest, "the body could not be read")
}

func wantsJSON(h http.Header) error {
	return wantsType(h, &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": nil}})
}

// wantsType refuses a body without one of the types that the operation takes.
func wantsType(h http.Header, body *huma.RequestBody) error {
	given := h.Values("Content-Type")
	if len(given) == 1 {
		kind, params, err := mime.ParseMediaType(given[0])
		charset, has := params["charset"]
		if _, ok := body.Content[kind]; ok && err == nil && (!has || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	var kinds []string
	for kind := range body.Content {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return problem(client.UnsupportedMediaType, "the body must be, and say that it is, "+strings.Join(kinds, " or "))
}
