package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/imagecase"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// TM-23: what a server is sent is for the server's processor where nobody says another, and
// it is told for which. A server that tells none, as old ones do, is taken for one like this
// machine.
func TestPullForAServer(t *testing.T) {
	here := imagecase.Pack(imagecase.Options{}, imagecase.Tar(imagecase.Entry{Name: "here"}))
	far := imagecase.Pack(imagecase.Options{Platform: "linux/s390x"}, imagecase.Tar(imagecase.Entry{Name: "far"}))
	arm := imagecase.Pack(imagecase.Options{Platform: "linux/arm/v7"}, imagecase.Tar(imagecase.Entry{Name: "arm"}))
	index := imagecase.Index(imagecase.TypeIndex, here, far, arm)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := index.Blobs[path.Base(r.URL.Path)]
		if path.Base(r.URL.Path) == "1" {
			b, ok = index.Root, true
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var of struct {
			MediaType string `json:"mediaType"`
		}
		_ = json.Unmarshal(b, &of) // a layer is no document
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", of.MediaType)
			w.Header().Set("Docker-Content-Digest", imagecase.Digest(b))
		}
		_, _ = w.Write(b)
	}))
	defer hub.Close()
	for _, tc := range []struct {
		name, server string
		words        []string
		platform     string // that the server is told
		want         imagecase.Packed
	}{
		{"the server's", "linux/s390x", nil, "linux/s390x", far},
		{"another", "linux/s390x", []string{"--platform", "linux/arm/v7"}, "linux/arm/v7", arm},
		{"an old server's", "", nil, here.Platform["os"].(string) + "/" + here.Platform["architecture"].(string), here},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var platform, archive string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var answer any
				switch r.Method + " " + r.URL.Path {
				case "GET /v1/version":
					answer = client.ServerVersion{Version: "v1", API: apiVersion}
				case "GET /v1/whoami":
					answer = client.Whoami{Actor: "operator", Roles: []string{"platform"}}
				case "GET /v1/host":
					answer = client.Host{Platform: tc.server}
				case "POST /v1/runtimes/x":
					platform = r.URL.Query().Get("platform")
					b, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					archive = string(b)
					answer = client.ImportedRuntime{Runtime: client.Runtime{Name: "x", Digest: bundle.Sum(b)}}
					w.WriteHeader(http.StatusCreated)
				default:
					t.Errorf("it was asked for %s %s", r.Method, r.URL.Path)
				}
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			}))
			defer s.Close()
			out := new(watched)
			env := map[string]string{"TRACON_SERVER": s.URL, "TRACON_KEY": "tracon_x"}
			a := &app{in: strings.NewReader(""), out: io.Discard, err: out, getenv: func(k string) string { return env[k] }}
			if code := a.main(t.Context(), append([]string{"runtime", "pull", "x", strings.TrimPrefix(hub.URL, "http://") + "/app:1"}, tc.words...)); code != 0 {
				t.Fatalf("exit code %d: %s", code, out.text.String())
			}
			if platform != tc.platform || !strings.Contains(archive, string(tc.want.Root)) {
				t.Errorf("the server is told %q, want %q with the image for it", platform, tc.platform)
			}
		})
	}
}
