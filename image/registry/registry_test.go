//go:build linux

package registry

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/internal/execfile"
	ic "github.com/tracon-go/tracon/internal/imagecase"
	"github.com/tracon-go/tracon/internal/outbound"
)

// push puts the parts of an image into a registry, as a builder does.
func push(t testing.TB, address, repository, tag string, p ic.Packed) {
	t.Helper()
	send := func(method, path, kind string, b []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address+"/v2/"+repository+path, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %s", method, path, answer.Status)
		}
	}
	var manifests []string
	for d, b := range p.Blobs {
		if bytes.Contains(b, []byte(`"schemaVersion"`)) {
			manifests = append(manifests, d)
			continue
		}
		send(http.MethodPost, "/blobs/uploads/?digest="+d, "application/octet-stream", b)
	}
	kind := func(b []byte) string {
		for _, k := range oci.MediaTypes() {
			if bytes.Contains(b, []byte(`"mediaType":"`+k+`","schemaVersion"`)) {
				return k
			}
		}
		t.Fatalf("what is %s?", b)
		return ""
	}
	slices.SortFunc(manifests, func(a, b string) int { // what is listed comes before what lists it
		return bytes.Compare(map[bool][]byte{true: {1}, false: {0}}[a == p.Digest()], map[bool][]byte{true: {1}, false: {0}}[b == p.Digest()])
	})
	for _, d := range manifests {
		send(http.MethodPut, "/manifests/"+d, kind(p.Blobs[d]), p.Blobs[d])
	}
	send(http.MethodPut, "/manifests/"+tag, kind(p.Root), p.Root)
}

// offer is a registry of somebody else's make, with an image app:1 in it.
func offer(t testing.TB, p ic.Packed, wrap func(http.Handler) http.Handler) (host string) {
	t.Helper()
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	first := httptest.NewServer(inner)
	defer first.Close()
	push(t, first.URL, "app", "1", p)
	server := httptest.NewServer(wrap(inner))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func honest(h http.Handler) http.Handler { return h }

var (
	base = ic.Tar(ic.Entry{Name: "usr/bin/run", Content: "#!run\n", Mode: 0o755})
	top  = ic.Tar(ic.Entry{Name: "usr/bin/more", Content: strings.Repeat("more ", 4000)})
)

// newStore is a store of which nothing may be left.
func newStore(t testing.TB) *image.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images")
	s := image.New(dir)
	t.Cleanup(func() {
		if _, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("case 40: there is still %v", left)
		}
	})
	return s
}

// pull pulls and unpacks, and says what came of it.
func pull(ctx context.Context, s *image.Store, ref string, o Options, i oci.Options) (*image.Import, error) {
	scratch, remove, err := s.Scratch()
	if err != nil {
		return nil, err
	}
	parts, err := Pull(ctx, ref, scratch, o, i)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	made, err := parts.Unpack(ctx, s)
	if err == nil {
		err = made.Image.Close()
	}
	return made, errors.Join(err, remove())
}

var plainHTTP = Options{PlainHTTP: true}

// TM-23: an image is had by a tag or by a digest, of the forms of OCI and of Docker, for
// the platform, and what a tag meant is told.
func TestPull(t *testing.T) {
	for _, docker := range []bool{false, true} {
		p := ic.Pack(ic.Options{Docker: docker, Env: []string{"PATH=/opt/bin"}}, base, top)
		kind := map[bool]string{false: ic.TypeIndex, true: ic.TypeDockerList}[docker]
		index := ic.Index(kind, p, ic.Pack(ic.Options{Docker: docker, Platform: "linux/s390x"}, top))
		host := offer(t, index, honest)
		s := newStore(t)
		var digests []bundle.Digest
		for _, tc := range []struct{ ref, source string }{
			{"/app:1", "/app:1@" + p.Digest()},
			{"/app@" + p.Digest(), "/app@" + p.Digest()},
			{"/app:whatever@" + p.Digest(), "/app@" + p.Digest()},
		} {
			var seen uint64
			made, err := pull(t.Context(), s, host+tc.ref, plainHTTP, oci.Options{Progress: func(done uint64) { seen = done }})
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, made.Digest)
			if made.Source != host+tc.source || made.Environment["PATH"] != "/opt/bin" || seen < uint64(len(p.Layers[0])+len(p.Layers[1])) {
				t.Errorf("%s: from %s with %v, %d bytes seen", tc.ref, made.Source, made.Environment, seen)
			}
		}
		if len(slices.Compact(digests)) != 1 {
			t.Errorf("it is %v", digests)
		}
		made, err := pull(t.Context(), s, host+"/app@"+index.Digest(), plainHTTP, oci.Options{Platform: oci.Platform{OS: "linux", Architecture: "s390x"}})
		if err != nil || !strings.HasPrefix(made.Source, host+"/app@"+index.Digest()+", for linux/s390x sha256:") || made.Digest == digests[0] {
			t.Errorf("another platform: %+v, %v", made, err)
		}
	}
}

// What names no image is not asked for, and the error says how one is named.
func TestReference(t *testing.T) {
	for _, tc := range []struct{ ref, host, repository, says string }{
		{"docker.io/python:3.12", "registry-1.docker.io", "library/python", ""},
		{"docker.io/library/python:3.12", "registry-1.docker.io", "library/python", ""},
		{"localhost/app:1", "localhost", "app", ""},
		{"ghcr.io/a/b@sha256:" + strings.Repeat("1", 64), "ghcr.io", "a/b", ""},
		{"registry:5000/a:1", "registry:5000", "a", ""},
		{"python:3.12", "", "", "says no registry"},
		{"library/python:3.12", "", "", "says no registry"},
		{"python", "", "", "says no registry"},
		{"", "", "", "says no registry"},
		{"docker.io/python", "", "", "neither which tag"},
		{"docker.io/Python:1", "", "", "names no image"},
		{"docker.io/a/../b:1", "", "", "names no image"},
		{"docker.io/a:1?x=y", "", "", "names no image"},
		{"docker.io/a@sha512:" + strings.Repeat("0", 128), "", "", "none by SHA-256"},
		{"https://docker.io/a:1", "", "", "names no image"},
		{"u:p@registry.example.org/a:1", "", "", "names no image"},
	} {
		ref, err := parse(tc.ref)
		if tc.says == "" && (err != nil || ref.Host() != tc.host || ref.Repository != tc.repository) || tc.says != "" && (!errors.Is(err, ErrReference) || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%q: %+v, %v; want %q", tc.ref, ref, err, tc.says)
		}
	}
	for ref, want := range map[string]bool{
		"localhost/a:1": true, "localhost:5000/a:1": true, "127.0.0.1:5000/a:1": true, "127.9.9.9/a:1": true, "[::1]:5000/a:1": true,
		"localhost.example.org/a:1": false, "10.0.0.1:5000/a:1": false, "docker.io/a:1": false, "": false,
	} {
		if got := IsHere(ref); got != want {
			t.Errorf("%q is here: %v", ref, got)
		}
	}
}

// TM-23, W10: a registry that lies, in whatever it answers, gives no image, and one that
// sends us elsewhere sends us nowhere; nothing is left on the disk.
func TestHostileRegistry(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	index := ic.Index(ic.TypeIndex, p)
	other := ic.Pack(ic.Options{}, ic.Tar(ic.Entry{Name: "evil"}))
	layer := ic.Digest(p.Layers[1])
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(p.Layers[1]) }))
	t.Cleanup(elsewhere.Close)
	// at answers for the path that ends so, in place of the registry.
	at := func(suffix string, answer func(w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, suffix) {
					answer(w, r)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
	}
	write := func(kind string, b []byte) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(b)
		}
	}
	chunked := func(b []byte) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush() // no length is said
			_, _ = w.Write(b)
		}
	}
	to := func(where string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, http.StatusTemporaryRedirect) }
	}
	endless := func(kind string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			chunk := bytes.Repeat([]byte(" "), 64<<10)
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	for _, tc := range []struct {
		name string
		wrap func(http.Handler) http.Handler
		says string
	}{
		{"a tampered layer", at(layer, chunked(append([]byte("x"), p.Layers[1][1:]...))), "altered"},
		{"a layer of another size", at(layer, write("", p.Layers[1][1:])), "mismatch"},
		{"a layer that ends too early", at(layer, chunked(p.Layers[1][1:])), "another size"},
		{"a layer that goes on", at(layer, chunked(append(bytes.Clone(p.Layers[1]), 'x'))), "another size"},
		{"a layer without end", at(layer, endless("")), "another size"},
		{"a manifest that was swapped", at("/manifests/"+p.Digest(), write(ic.TypeManifest, other.Root)), "mismatch"},
		{"a manifest that was swapped, of no length", at("/manifests/"+p.Digest(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ic.TypeManifest)
			chunked(other.Root)(w, r)
		}), "another size"},
		{"a manifest of another type", at("/manifests/"+p.Digest(), write(ic.TypeIndex, p.Root)), "mismatch"},
		{"a manifest without end", at("/manifests/"+p.Digest(), endless(ic.TypeManifest)), "another size"},
		{"a tag that means what it does not", at("/manifests/1", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Content-Digest", other.Digest())
			write(ic.TypeIndex, index.Root)(w, r)
		}), "altered"},
		{"a tag that is a web page", at("/manifests/1", write("text/html", []byte("<html>"))), "no image"},
		{"a tag without end", at("/manifests/1", endless(ic.TypeIndex)), "altered"},
		{"an index that leads elsewhere", at("/manifests/1", write(ic.TypeIndex, ic.Index(ic.TypeIndex, other).Root)), "no such image"},
		{"a manifest is elsewhere", at("/manifests/1", to(elsewhere.URL+"/x")), "only for a part of an image"},
		{"a token is elsewhere, by way of what looks like a part", func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/blobs/token"):
					http.Redirect(w, r, "https://registry.invalid/token", http.StatusTemporaryRedirect)
				case strings.HasSuffix(r.URL.Path, "/manifests/1"):
					w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/v2/app/blobs/token",service="x"`)
					w.WriteHeader(http.StatusUnauthorized)
				default:
					h.ServeHTTP(w, r)
				}
			})
		}, "only for a part of an image"},
		{"a layer is elsewhere without TLS", at(layer, to(elsewhere.URL+"/x")), "without TLS"},
		{"a layer is a file", at(layer, to("file:///etc/passwd")), "without TLS"},
		{"a layer is where clouds keep credentials", at(layer, to("https://169.254.169.254/latest")), "of no other network"},
		{"a layer is in a private network", at(layer, to("https://10.0.0.1/x")), "private network"},
		{"a layer is sent on and on", at(layer, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), "on and on"},
		{"a token is in a private network", at("/manifests/1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://10.0.0.1/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "private network"},
		{"a token is elsewhere without TLS", at("/manifests/1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://registry.invalid/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "registry.invalid"},
		{"not for everybody", at("/manifests/1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "not for everybody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host := offer(t, index, tc.wrap)
			made, err := pull(t.Context(), newStore(t), host+"/app:1", plainHTTP, oci.Options{})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%+v, %v; want an error with %q", made, err, tc.says)
			}
		})
	}
}

// TM-23: only a part of the image may be answered elsewhere, and only the registry that was
// asked may say so: no name of a repository and no place for tokens looks like one.
func TestRedirect(t *testing.T) {
	part := "/blobs/sha256:" + strings.Repeat("1", 64)
	for _, tc := range []struct {
		name, ref, from string
		ok              bool
	}{
		{"a part", "r.example.org/app:1", "https://r.example.org/v2/app" + part, true},
		{"a part of Docker Hub's", "docker.io/app:1", "https://registry-1.docker.io/v2/library/app" + part, true},
		{"a part, asked of a repository of such a name", "r.example.org/x/blobs/y:1", "https://r.example.org/v2/x/blobs/y" + part, true},
		{"a manifest", "r.example.org/app:1", "https://r.example.org/v2/app/manifests/1", false},
		{"a manifest of a repository of such a name", "r.example.org/x/blobs/y:1", "https://r.example.org/v2/x/blobs/y/manifests/1", false},
		{"a manifest whose tag is a digest", "r.example.org/x/blobs/y:1", "https://r.example.org/v2/x/blobs/y/manifests/sha256:" + strings.Repeat("1", 64), false},
		{"a token", "r.example.org/app:1", "https://auth.example.org/blobs/token", false},
		{"a token in the place of a part", "r.example.org/app:1", "https://auth.example.org/v2/app" + part, false},
		{"a token of the registry's", "r.example.org/app:1", "https://r.example.org/v2/app/blobs/token", false},
		{"a part of another repository", "r.example.org/app:1", "https://r.example.org/v2/other" + part, false},
		{"a part of a repository within", "r.example.org/app:1", "https://r.example.org/v2/app/blobs/x" + part, false},
		{"a part at another port", "r.example.org/app:1", "https://r.example.org:5000/v2/app" + part, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ref, err := parse(tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			s, err := open(ref, Options{})
			if err != nil {
				t.Fatal(err)
			}
			ask := func(address string) *http.Request {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			err = s.redirect(ask("https://cdn.example.org/x"), []*http.Request{ask(tc.from)})
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, outbound.ErrRefused) {
				t.Errorf("sent on: %v, want it refused: %v", err, !tc.ok)
			}
		})
	}
}

// W10: without a word no registry on this machine or in a private network is asked by a
// name that only resolves to one, and none by plain HTTP.
func TestReach(t *testing.T) {
	host := offer(t, ic.Pack(ic.Options{}, base), honest)
	for _, tc := range []struct {
		name, ref string
		options   Options
		says      string
	}{
		{"TLS is asked for", host + "/app:1", Options{}, "HTTP response to HTTPS"},
		{"a private network", "10.0.0.1:5000/app:1", plainHTTP, "say private in --reach"},
		{"where clouds keep credentials", "169.254.169.254/app:1", Options{PlainHTTP: true, Reach: []string{"private", "loopback"}}, "of no other network"},
		{"an unknown word", host + "/app:1", Options{Reach: []string{"everywhere"}}, "no word"},
	} {
		if made, err := pull(t.Context(), newStore(t), tc.ref, tc.options, oci.Options{}); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v; want %q", tc.name, made, err, tc.says)
		}
	}
}

// Over TLS a registry must be of an authority that is trusted; then a part may lie with
// another one, and that one is not told who asks.
func TestTLS(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	first := httptest.NewServer(inner)
	defer first.Close()
	push(t, first.URL, "app", "1", p)
	var mu sync.Mutex
	told := map[string]bool{}
	cdn := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		told[r.Header.Get("Authorization")] = true
		mu.Unlock()
		_, _ = w.Write(p.Layers[1])
	}))
	defer cdn.Close()
	secret := base64.StdEncoding.EncodeToString([]byte("user:secret"))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Basic "+secret:
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, ic.Digest(p.Layers[1])):
			http.Redirect(w, r, cdn.URL+"/part", http.StatusTemporaryRedirect)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	server.Config.ErrorLog, cdn.Config.ErrorLog = log.New(io.Discard, "", 0), log.New(io.Discard, "", 0)
	host := strings.TrimPrefix(server.URL, "https://")
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths":{"`+host+`":{"auth":"`+secret+`"}},"proxies":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	if _, err := pull(t.Context(), s, host+"/app:1", Options{DockerConfig: file}, oci.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("of no authority: %v", err)
	}
	if _, err := pull(t.Context(), s, host+"/app:1", Options{Roots: roots, DockerConfig: file + ".none"}, oci.Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("without credentials: %v, want ErrNotFound", err)
	}
	made, err := pull(t.Context(), s, host+"/app:1", Options{Roots: roots, DockerConfig: file}, oci.Options{})
	if err != nil || made.Files != 2 {
		t.Fatalf("%+v, %v", made, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !maps.Equal(told, map[string]bool{"": true}) {
		t.Errorf("another host was told %v", told)
	}
}

// Credentials come from the user's Docker configuration: the file's own, those of a
// helper for all, or of one for the registry, which is a program's name and no path.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\nread host\n[ \"$1\" = get ] && printf '{\"ServerURL\":\"%s\",\"Username\":\"user-%s\",\"Secret\":\"secret\"}' \"$host\" \"${0##*-}\"\n"
	for _, name := range []string{"all", "one"} {
		if err := execfile.Write(filepath.Join(dir, "docker-credential-"+name), strings.NewReader(program)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	own := base64.StdEncoding.EncodeToString([]byte("own:secret"))
	for _, tc := range []struct{ name, config, user, says string }{
		{"the file's own", `{"auths":{"r.example.org":{"auth":"` + own + `"}}}`, "own", ""},
		{"another registry's", `{"auths":{"s.example.org":{"auth":"` + own + `"}}}`, "", ""},
		{"a helper", `{"credsStore":"all"}`, "user-all", ""},
		{"the registry's helper", `{"credsStore":"all","credHelpers":{"r.example.org":"one"}}`, "user-one", ""},
		{"a helper that is not there", `{"credsStore":"none"}`, "", "none"},
		{"a helper that is a path", `{"credsStore":"x/../../evil"}`, "", "no program"},
		{"another's helper that is a path", `{"credHelpers":{"s.example.org":"../evil"}}`, "", "no program"},
		{"no JSON", `{`, "", "config.json"},
		{"a name twice", `{"credsStore":"all","credsStore":"one"}`, "", "config.json"},
		{"too large", `{"x":"` + strings.Repeat("x", maxConfig) + `"}`, "", "more than"},
	} {
		file := filepath.Join(dir, "config.json")
		if err := os.WriteFile(file, []byte(tc.config), 0o600); err != nil {
			t.Fatal(err)
		}
		get, err := fromDocker(file)
		user := ""
		if err == nil {
			got, gerr := get(t.Context(), "r.example.org")
			user, err = got.Username, gerr
		}
		if user != tc.user || (tc.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, %v", tc.name, user, err)
		}
	}
	if get, err := fromDocker(filepath.Join(dir, "nowhere")); get != nil || err != nil {
		t.Errorf("no file: %v", err)
	}
}

// What breaks off on its way is asked for again, and a registry that is busy is waited for.
func TestBrokenOff(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	layer := ic.Digest(p.Layers[1])
	var mu sync.Mutex
	asked := map[string]int{}
	wrap := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.Path]++
			n := asked[r.URL.Path]
			mu.Unlock()
			switch {
			case n == 1 && strings.HasSuffix(r.URL.Path, layer):
				w.Header().Set("Content-Length", fmt.Sprint(len(p.Layers[1])))
				_, _ = w.Write(p.Layers[1][:20])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			case n == 1 && strings.HasSuffix(r.URL.Path, "/manifests/1"):
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
	host := offer(t, p, wrap)
	if _, err := pull(t.Context(), newStore(t), host+"/app:1", plainHTTP, oci.Options{}); err != nil {
		t.Error(err)
	}
}

// Who stops it is who is told, and nothing is left, wherever it was.
func TestStopped(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	why := errors.New("the operator left")
	for _, where := range []string{"/manifests/1", ic.Digest(p.Config), ic.Digest(p.Layers[1])} {
		ctx, cancel := context.WithCancelCause(t.Context())
		host := offer(t, p, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, where) {
					cancel(why)
					<-r.Context().Done()
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		if _, err := pull(ctx, newStore(t), host+"/app:1", plainHTTP, oci.Options{}); !errors.Is(err, why) {
			t.Errorf("at %s: %v, want the cause", where, err)
		}
		cancel(nil)
	}
}
