package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

var problemType = reflect.TypeFor[client.Problem]()

// answer is the body of an answer.
type answer[T any] struct{ Body T }

// tagged is the body of an answer with its ETag.
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

func (s *server) metaRoutes() {
	route(s, operation{id: "health", method: http.MethodGet, path: "/healthz", tag: "host", summary: "Whether the server answers", need: openToAll},
		func(context.Context, access.Principal, *struct{}) (*answer[client.Health], error) {
			return &answer[client.Health]{client.Health{Status: "ok"}}, nil
		})
	ready := operation{id: "ready", method: http.MethodGet, path: "/readyz", tag: "host", summary: "Whether scripts can run: in one word", need: openToAll, answers: notReady()}
	route(s, ready, func(ctx context.Context, _ access.Principal, _ *struct{}) (*readiness, error) {
		return s.ready(ctx, access.Principal{})
	})
	ready = operation{id: "readiness", method: http.MethodGet, path: "/v1/readiness", tag: "host", summary: "Whether scripts can run; why not, for the platform", need: anyoneSeen, answers: notReady()}
	route(s, ready, func(ctx context.Context, p access.Principal, _ *struct{}) (*readiness, error) { return s.ready(ctx, p) })
	route(s, operation{id: "whoami", method: http.MethodGet, path: "/v1/whoami", tag: "access", summary: "Who the credential is, and what it may do", need: anyoneSeen}, s.whoami)
	route(s, operation{id: "version", method: http.MethodGet, path: "/v1/version", tag: "host", summary: "The version of the program", need: anyoneSeen},
		func(context.Context, access.Principal, *struct{}) (*answer[client.ServerVersion], error) {
			return &answer[client.ServerVersion]{client.ServerVersion{Version: s.Version, API: "1"}}, nil
		})
	route(s, operation{id: "openapi", method: http.MethodGet, path: "/openapi.json", tag: "host", summary: "This document", need: anyoneSeen,
		answers: map[string]*huma.Response{"200": {Description: "the document", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}}}},
		func(context.Context, access.Principal, *struct{}) (*document, error) {
			return &document{ContentType: "application/json", Body: s.spec}, nil
		})
}

// readiness is 200 or 503, with the same body.
type readiness struct {
	Status int
	Body   client.Readiness
}

func notReady() map[string]*huma.Response {
	return map[string]*huma.Response{"503": {Description: "not ready", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Readiness"}}}}}
}

func (s *server) ready(ctx context.Context, p access.Principal) (*readiness, error) {
	err := s.Runner.Ready(ctx)
	if err == nil {
		return &readiness{http.StatusOK, client.Readiness{Status: "ready"}}, nil
	}
	s.Logger.WarnContext(ctx, "not ready", "request", RequestID(ctx), "err", err)
	out := client.Readiness{Status: "not ready"}
	if p.IsPlatform() {
		out.Why = err.Error()
	}
	return &readiness{http.StatusServiceUnavailable, out}, nil
}

type document struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *server) whoami(_ context.Context, p access.Principal, _ *struct{}) (*answer[client.Whoami], error) {
	w := client.Whoami{Tenant: p.Tenant, Actor: p.Actor, Key: p.Key, Roles: []string{}, Permissions: []string{}}
	for _, r := range p.Roles {
		w.Roles = append(w.Roles, string(r))
	}
	for _, what := range access.Permissions() {
		if p.May(what) {
			w.Permissions = append(w.Permissions, string(what))
		}
	}
	return &answer[client.Whoami]{w}, nil
}
