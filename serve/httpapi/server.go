package httpapi

import (
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/internal/turns"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

type server struct {
	Config
	api  huma.API
	mux  *http.ServeMux
	spec []byte // the document, as it is served

	turns   *turns.Turns
	uploads uploads
	upkeep  chan struct{} // full while what is kept is checked, or erased
}

// New returns the API over c. The handler is safe for concurrent use.
//
// # Errors
//
// For a required field that is nil, and for a Prefix that is none.
func New(c Config) (http.Handler, error) {
	_, h, err := newServer(c)
	return h, err
}

func newServer(c Config) (*server, http.Handler, error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	c.Version = cmp.Or(c.Version, "unknown")
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &server{Config: c, mux: http.NewServeMux(), turns: turns.New(heavyAtOnce), upkeep: make(chan struct{}, 1)}
	s.api = humago.New(s.mux, s.huma())
	s.api.UseMiddleware(s.enter)
	s.routes()
	s.closeProblems()
	var err error
	if s.spec, err = json.MarshalIndent(s.api.OpenAPI(), "", "  "); err != nil {
		return nil, nil, err
	}
	var h http.Handler = http.HandlerFunc(s.serve)
	if c.Prefix != "" {
		h = http.StripPrefix(c.Prefix, h)
	}
	return s, s.outermost(h), nil
}

// routes registers every operation.
func (s *server) routes() {
	s.metaRoutes()
	s.skillRoutes()
	s.importRoutes()
	s.grantRoutes()
	s.runRoutes()
	s.callRoutes()
	s.reviewRoutes()
	s.policyRoutes()
	s.auditRoutes()
	s.keyRoutes()
	s.tenantRoutes()
	s.hostRoutes()
	s.upkeepRoutes()
}

// huma is the library's configuration: its own pages, its links to schemas and its
// choice of formats are off, and its decoder is ours.
func (s *server) huma() huma.Config {
	strict := huma.Format{
		Marshal: func(w io.Writer, v any) error {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			return enc.Encode(v)
		},
		Unmarshal: strictjson.Unmarshal,
	}
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Tracon", Version: "1", Description: "The management API of Tracon, which runs the scripts of agent skills only when every gate says yes. docs/api.md tells the conventions.",
				License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
			Servers: []*huma.Server{{URL: cmp.Or(s.Prefix, "/")}},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "an API key, or what the host's own authentication takes"}},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": strict, "application/problem+json": strict},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
	c.Transformers = []huma.Transformer{s.closedProblem}
	return c
}

// closeProblems has the document name every code, as a list that may grow, and nothing
// of the library's own problems, which nobody is ever answered with.
func (s *server) closeProblems() {
	schemas := s.api.OpenAPI().Components.Schemas.Map()
	schemas["Problem"].Properties["code"].Extensions = map[string]any{"x-extensible-enum": client.Codes()}
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
}

// schemaName names the wire types in the document as they are named in Go.
func schemaName(t reflect.Type, hint string) string {
	return strings.ReplaceAll(huma.DefaultSchemaNamer(t, hint), "Client", "")
}

// serve answers one request: by the mux, for a path that has one spelling alone.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	p := r.URL.EscapedPath()
	if p == "" || p[0] != '/' || path.Clean(p) != p || strings.Contains(p, "//") {
		s.refuse(w, r, problem(client.NotFound, "there is nothing here"))
		return
	}
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	// The mux would answer in plain words: 404, or 405 with what is allowed.
	rec := &headerOnly{header: http.Header{}}
	h.ServeHTTP(rec, r)
	if rec.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", rec.header.Get("Allow"))
		s.refuse(w, r, problem(client.MethodNotAllowed, "the path is there, the method is not"))
		return
	}
	s.refuse(w, r, problem(client.NotFound, "there is nothing here"))
}

// headerOnly takes an answer's status and header.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (h *headerOnly) WriteHeader(status int)      { h.status = cmp.Or(h.status, status) }

// outermost is the [Door] of the API, and keeps browsers from being led to it.
func (s *server) outermost(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, problem(client.CrossOrigin, "a browser sent this for another site"))
	}))
	return Door(s.Logger, cross.Handler(next))
}
