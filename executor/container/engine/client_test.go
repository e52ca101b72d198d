//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// B2, CT: whether Podman is rootless, and how many identities its containers have, is told
// by Podman alone: by no word of Docker's. What is no answer is none.
func TestAskPodman(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		status       int
		rootless     bool
		users        int
		fails        string
	}{
		{"of root", `{"host":{"security":{"rootless":false},"idMappings":{}}}`, 200, false, 0, ""},
		{"rootless", `{"host":{"security":{"rootless":true},"idMappings":{"uidmap":[{"container_id":0,"host_id":1000,"size":1},{"container_id":1,"host_id":100000,"size":65536}]}}}`, 200, true, 65537, ""},
		{"rootless with one identity", `{"host":{"security":{"rootless":true},"idMappings":{"uidmap":[{"size":1}]}}}`, 200, true, 1, ""},
		{"one that does not tell", `{"cause":"no such endpoint"}`, 404, false, 0, ""},
		{"nonsense", `rootless`, 200, false, 0, "what it tells of itself"},
		{"another type", `{"host":{"security":{"rootless":"yes"}}}`, 200, false, 0, "what it tells of itself"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.41")
				w.Header().Set("Content-Type", "application/json")
				answer := `{}`
				switch {
				case strings.HasSuffix(r.URL.Path, "/libpod/info"):
					w.WriteHeader(tc.status)
					answer = tc.answer
				case strings.HasSuffix(r.URL.Path, "/version"):
					answer = `{"Os":"linux","Arch":"` + runtime.GOARCH + `","Version":"4.3.1","Components":[{"Name":"Podman Engine"}]}`
				}
				_, _ = w.Write([]byte(answer))
			})}
			served := make(chan struct{})
			go func() {
				defer close(served)
				_ = s.Serve(l)
			}()
			t.Cleanup(func() {
				s.Close()
				<-served
			})
			a, err := dial(context.Background(), "unix://"+socket)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer a.client.Close()
			if a.rootless != tc.rootless || a.users != tc.users || a.mapped != tc.rootless || a.name != podman {
				t.Errorf("got %+v", a)
			}
		})
	}
}
