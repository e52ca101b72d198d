package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/serve/runs"
)

// api makes the handler of what is behind the doors of h.
func (s *server) api(h *House, r *tracon.Runner, auth httpapi.Authenticator, lim httpapi.Limiter, mcp *mcpserver.Handler) (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{
		Authenticator: auth, Limiter: lim, Admin: h.Admin, Store: h.Store, Contents: h.Contents, Log: h.Log,
		Runner: stopping{r, s}, Runs: s.runs, Folders: h.Skills, Spool: h.Config.Data, Notary: h.Notary, Host: newAPIHost(h),
		Instance: idempotency.Instance(h.id), Version: s.o.Version, Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	metrics, metadata := s.tel.Handler(), mcp.Metadata()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			httpapi.Note(r.Context(), "metrics", access.Principal{})
		case mcpPath:
			httpapi.Note(r.Context(), "mcp", access.Principal{}) // who asks is noted when it is known
			mcp.ServeHTTP(w, r)
			return
		case mcpserver.MetadataPath + mcpPath:
			httpapi.Note(r.Context(), "mcpMetadata", access.Principal{})
			metadata.ServeHTTP(w, r)
			return
		default:
			api.ServeHTTP(w, r)
			return
		}
		p, err := auth.Authenticate(r)
		httpapi.Note(r.Context(), "metrics", p)
		many, flood := errors.AsType[*access.TooManyError](err)
		switch {
		case flood:
			w.Header().Set("Retry-After", strconv.Itoa(max(int((many.After+time.Second-1)/time.Second), 1)))
			httpapi.Refuse(w, r, client.RateLimited, "too many requests; Retry-After says when to send the next")
		case errors.Is(err, httpapi.ErrUnauthenticated):
			httpapi.Refuse(w, r, client.Unauthenticated, "/metrics takes a key of the platform")
		case err != nil:
			httpapi.Refuse(w, r, client.Unavailable, "who asks cannot be found out now")
		case !p.May(access.ReadHost):
			httpapi.Refuse(w, r, client.Forbidden, "/metrics takes a key of the platform")
		default:
			metrics.ServeHTTP(w, r)
		}
	}), nil
}

// stopping is a runner that is not ready while the server stops.
type stopping struct {
	*tracon.Runner
	s *server
}

func (r stopping) Ready(ctx context.Context) error {
	if r.s.stopping.Load() {
		return errStops
	}
	return r.Runner.Ready(ctx)
}

var errStops = errors.New("the server stops")

// handler is the door before inner, and measures what it answers.
func (s *server) handler(inner http.Handler) http.Handler {
	measured := s.observer.HTTP(httpapi.Door(s.log, inner), func(r *http.Request) string {
		if r.URL.Path == mcpPath || r.URL.Path == "/metrics" {
			return r.URL.Path
		}
		return cmp.Or(httpapi.Route(r.Context()), "none")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		measured.ServeHTTP(w, r.WithContext(httpapi.WithRoute(r.Context())))
	})
}

// answer answers by the generation that there is.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	g := s.inside()
	if g == nil {
		without(w, r)
		return
	}
	defer g.leave()
	g.handler.ServeHTTP(w, r.WithContext(runs.WithHold(r.Context(), g.hold)))
}

// inside returns the generation that there is, entered; nil where there is none.
func (s *server) inside() *generation {
	for {
		g := s.now.Load()
		if g == nil || g.enter() {
			return g
		}
	}
}

// without answers while the store is being opened.
func without(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(client.Health{Status: "ok"}) // who does not listen hears nothing
		return
	}
	w.Header().Set("Retry-After", "1")
	httpapi.Refuse(w, r, client.Unavailable, "what is kept cannot be reached now")
}
