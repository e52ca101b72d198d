package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/mcpserver"
)

// api makes the handler of what is behind the doors of h.
func (s *server) api(h *House, r *tracon.Runner, auth httpapi.Authenticator, lim httpapi.Limiter, mcp *mcpserver.Handler) (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{
		Authenticator: auth, Limiter: lim, Admin: h.Admin, Store: h.Store, Contents: h.Contents, Log: h.Log,
		Runner: stopping{r, s}, Runs: s.runs, Folders: h.Skills, Spool: h.Config.Data, Notary: h.Notary, Host: newAPIHost(h),
		Version: s.o.Version, Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	metrics, metadata := s.tel.Handler(), mcp.Metadata()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
		case mcpPath:
			mcp.ServeHTTP(w, r)
			return
		case mcpserver.MetadataPath + mcpPath:
			metadata.ServeHTTP(w, r)
			return
		default:
			api.ServeHTTP(w, r)
			return
		}
		p, err := auth.Authenticate(r)
		switch {
		case errors.Is(err, httpapi.ErrUnauthenticated):
			w.Header().Set("WWW-Authenticate", `Bearer realm="tracon"`)
			refuse(w, client.Unauthenticated, "/metrics takes a key of the platform")
		case err != nil:
			refuse(w, client.Unavailable, "who asks cannot be found out now")
		case !p.May(access.ReadHost):
			refuse(w, client.Forbidden, "/metrics takes a key of the platform")
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

// handler answers by the generation that there is, and measures it.
func (s *server) handler() http.Handler {
	measured := s.observer.HTTP(http.HandlerFunc(s.answer), func(r *http.Request) string {
		if r.URL.Path == mcpPath || r.URL.Path == "/metrics" {
			return r.URL.Path
		}
		return cmp.Or(httpapi.Route(r.Context()), "none")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		measured.ServeHTTP(w, r.WithContext(httpapi.WithRoute(r.Context())))
	})
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	g := s.inside()
	if g == nil {
		without(w, r)
		return
	}
	defer g.leave()
	g.handler.ServeHTTP(w, r)
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
	refuse(w, client.Unavailable, "what is kept cannot be reached now")
}

// refuse writes a problem where the API itself does not.
func refuse(w http.ResponseWriter, code client.Code, detail string) {
	head := w.Header()
	head.Set("Content-Type", "application/problem+json")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	w.WriteHeader(code.Status())
	_ = json.NewEncoder(w).Encode(client.Problem{Type: "urn:tracon:problem:" + string(code), Title: http.StatusText(code.Status()), Status: code.Status(), Code: code, Detail: detail})
}
