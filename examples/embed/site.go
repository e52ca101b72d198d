package main

import (
	"fmt"
	"html"
	"net/http"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/runs"
)

// A user is somebody whom the application knows.
type user struct {
	name, customer string
	roles          []access.Role
}

// sessions are the application's own logins, by the cookie that it gave.
type sessions map[string]user

// people stand for those who have logged in.
var people = sessions{
	"a-cookie-of-anna":  {"anna", "acme", []access.Role{access.Operator}},
	"a-cookie-of-rob":   {"rob", "acme", []access.Role{access.Reader}},
	"a-cookie-of-gwen":  {"gwen", "globex", []access.Role{access.Admin}},
	"a-cookie-of-marla": {"marla", "acme", nil}, // may log in, and nothing here
}

// Authenticate implements [httpapi.Authenticator]: whoever is logged in to the
// application acts for the customer that he belongs to. No path and no header of the
// request says which one that is.
func (s sessions) Authenticate(r *http.Request) (access.Principal, error) {
	c, err := r.Cookie("session")
	if err != nil {
		return access.Principal{}, httpapi.ErrUnauthenticated
	}
	u, ok := s[c.Value]
	if !ok {
		return access.Principal{}, httpapi.ErrUnauthenticated
	}
	return access.Principal{Tenant: u.customer, Actor: u.name, Roles: u.roles}, nil
}

// A site is the application's server. Close its runs before the host's runner.
type site struct {
	http.Handler
	runs *runs.Runs
}

// newSite has a page of the application's own, and Tracon's API below /scripts/.
func newSite(h *host, s sessions) (*site, error) {
	all, err := runs.New(h.runner, runs.Limits{})
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{Prefix: "/scripts", Authenticator: s, Admin: h.desk, Store: h.store, Contents: h.skills,
		Log: h.log, Runner: h.runner, Runs: all, Folders: h.skills})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/scripts/", api)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Authenticate(r)
		if err != nil {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "<p>Hello %s of %s.", html.EscapeString(p.Actor), html.EscapeString(p.Tenant))
	})
	return &site{mux, all}, nil
}
