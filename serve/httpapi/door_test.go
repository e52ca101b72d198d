package httpapi

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// What is served beside the API has its door too: an id of ours, one line in the log
// that says who asked and what came of it, and a flush that gets through; a refusal and
// a panic leave their line as well (W03).
func TestDoor(t *testing.T) {
	for _, tt := range []struct {
		name   string
		next   http.HandlerFunc
		status int
		logged []string
	}{
		{"answered", func(w http.ResponseWriter, r *http.Request) {
			Note(r.Context(), "mcp", access.Principal{Tenant: "acme", Actor: "ann", Key: "k1"})
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("a stream cannot be flushed: %v", err)
			}
		}, 200, []string{"operation=mcp", "tenant=acme", "actor=ann", "key=k1", "status=200"}},
		{"refused", func(w http.ResponseWriter, r *http.Request) {
			Note(r.Context(), "metrics", access.Principal{})
			Refuse(w, r, client.Unauthenticated, "none")
		}, 401, []string{"operation=metrics", "status=401"}},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("gone") }, 500, []string{"panic=gone", "status=500"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&out, nil))
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/x", nil)
			r.Header.Set(RequestIDHeader, "chosen")
			Door(logger, Door(logger, tt.next)).ServeHTTP(w, r) // two are one
			id := w.Header().Get(RequestIDHeader)
			if w.Code != tt.status || id == "" || id == "chosen" {
				t.Errorf("status %d, id %q", w.Code, id)
			}
			if n := strings.Count(out.String(), "msg=request"); n != 1 {
				t.Errorf("%d lines for one request:\n%s", n, &out)
			}
			for _, want := range append(tt.logged, "request="+id) {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the log lacks %s:\n%s", want, &out)
				}
			}
			if w.Code >= 400 && (w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), id)) {
				t.Errorf("no problem with the id: %v %s", w.Header(), w.Body)
			}
		})
	}
}

// Who lacks a permission is told the one that he could be given: a tenant's the
// tenant's, the platform's its own (B8).
func TestNeedNamesWhatTheAskerCouldHave(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    access.Principal
		need need
		want access.Permission
	}{
		{"a tenant's", access.Principal{Tenant: "acme", Actor: "a", Roles: []access.Role{access.Reader}}, may(access.ReadKeys, access.ReadPlatform), access.ReadKeys},
		{"the platform's", access.Principal{Actor: "p", Roles: []access.Role{access.Platform}, Scopes: []access.Permission{access.ReadTenants}}, may(access.ReadAudit, access.ReadHost), access.ReadHost},
		{"the platform's, first", access.Principal{Actor: "p", Roles: []access.Role{access.Platform}, Scopes: []access.Permission{access.ReadTenants}}, may(access.ReadHost, access.ReadAudit), access.ReadHost},
	} {
		err := tt.need.check(context.Background(), nil, tt.p)
		if err == nil || !strings.Contains(err.Error(), string(tt.want)) {
			t.Errorf("%s: %v, want one that names %s", tt.name, err, tt.want)
		}
	}
	if err := (need{}).check(context.Background(), nil, access.Principal{}); err == nil {
		t.Error("a need of nothing is met")
	}
}
