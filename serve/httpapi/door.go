package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// RequestIDHeader is the header of an answer that has the request's id: one of ours,
// never the client's.
const RequestIDHeader = "Tracon-Request-Id"

// Door gives a request its id, its answer the headers that all have, and the log its
// line; and no panic of next reaches the server. The API has one itself. Who serves
// more beside it puts one before everything: the API's own then adds nothing. Logger
// nil means slog.Default().
func Door(logger *slog.Logger, next http.Handler) http.Handler {
	if logger == nil {
		logger = slog.Default()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if RequestID(r.Context()) != "" {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		c := &call{id: id.New()}
		r = r.WithContext(withCall(r.Context(), c))
		rec := &recorder{ResponseWriter: w}
		head := w.Header()
		head.Set(RequestIDHeader, c.id)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		head.Set("Referrer-Policy", "no-referrer")
		defer func() {
			p := recover()
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p) // who panics so wants the connection closed
			}
			if p != nil {
				logger.Error("a request's handler panicked", "request", c.id, "operation", c.operation, "panic", p)
				if rec.status == 0 {
					Refuse(rec, r, client.Internal, "")
				}
			}
			if c.quiet {
				return
			}
			// The path is not logged: it may hold what was meant to be secret.
			logger.Info("request", "request", c.id, "method", r.Method, "operation", c.operation, "status", cmp.Or(rec.status, 200),
				"tenant", c.principal.Tenant, "actor", c.principal.Actor, "key", c.principal.Key, "seconds", time.Since(began).Seconds())
		}()
		next.ServeHTTP(rec, r)
	})
}

// Note tells the [Door] of the request under way what was asked for and who did: for
// the log's line. Where there is no door it does nothing. It is for the goroutine that
// answers the request.
func Note(ctx context.Context, operation string, p access.Principal) {
	c := callOf(ctx)
	c.operation, c.principal = operation, p
}

// Quiet has the [Door] write no line of the request under way: for those of a flood,
// which whoever refuses them counts. It is for the goroutine that answers the request.
func Quiet(ctx context.Context) { callOf(ctx).quiet = true }

// Refuse answers with the problem, as the API does: for what is served beside it. A
// WWW-Authenticate or Retry-After that stands in the header already stays.
func Refuse(w http.ResponseWriter, r *http.Request, code client.Code, detail string) {
	p := problem(code, detail)
	p.RequestID = RequestID(r.Context())
	write(w, r, p)
}

func write(w http.ResponseWriter, r *http.Request, p *client.Problem) {
	head := w.Header()
	head.Set("Content-Type", "application/problem+json")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusUnauthorized:
		orSet(head, "WWW-Authenticate", `Bearer realm="tracon"`)
	case http.StatusTooManyRequests:
		orSet(head, "Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(p) // who does not listen hears nothing
	}
}

func orSet(head http.Header, name, value string) {
	if head.Get(name) == "" {
		head.Set(name, value)
	}
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if status >= 200 {
		r.status = cmp.Or(r.status, status)
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
