package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracon-go/tracon/internal/imagecase"
)

// registryCommands are what scripts call for images, and registries that have them.
var registryCommands = map[string]func(*testscript.TestScript, bool, []string){
	"registry":  startRegistry,
	"pack":      packImage,
	"realimage": pushReal,
}

// registry VAR [lies|hangs|login|tls] starts a registry of somebody else's make on this
// machine, and sets VAR to its address. One that lies alters what is large; one that hangs
// sends none of it, and the file VAR is there when it was asked to; one with a login shows
// its images to user:secret alone; one with TLS has nothing, and the authority of its
// certificate in VAR.pem.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: registry VAR [lies|hangs|login|tls]")
	}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	how, asked := strings.Join(args[1:], ""), ts.MkAbs(args[0])
	over := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		if how == "login" && r.Method == http.MethodGet && user+":"+secret != "user:secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if how != "lies" && how != "hangs" || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			inner.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		b := answer.Body.Bytes()
		switch {
		case len(b) < 64<<10:
		case how == "lies":
			b[len(b)/2] ^= 1
		default:
			_, _ = w.Write(b[:1000])
			_ = http.NewResponseController(w).Flush()
			_ = os.WriteFile(asked, nil, 0o600)
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = w.Write(b)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if how == "tls" {
		server.StartTLS()
		ts.Check(os.WriteFile(asked+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	} else {
		server.Start()
	}
	ts.Defer(func() { close(over); server.Close() })
	ts.Setenv(args[0], server.Listener.Addr().String())
}

// pack TARGET LAYER... [NAME=VALUE...] packs folders as the layers of an image that
// sets the variables, and sets DIGEST to its manifest's. TARGET is HOST/REPOSITORY:TAG of
// a registry, layout:DIR, or saved:FILE for what docker save writes.
func packImage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: pack TARGET LAYER... [NAME=VALUE...] [for:PLATFORM]")
	}
	o := imagecase.Options{Compress: func(b []byte) []byte { return b }, User: "1000:1000", Entrypoint: []string{"/bin/sh", "-c", "exit 9"}}
	var layers [][]byte
	for _, arg := range args[1:] {
		if strings.Contains(arg, "=") {
			o.Env = append(o.Env, arg)
			continue
		}
		if platform, ok := strings.CutPrefix(arg, "for:"); ok {
			o.Platform = platform
			continue
		}
		layer, err := imagecase.TarFolder(ts.MkAbs(arg))
		ts.Check(err)
		layers = append(layers, layer)
	}
	p := imagecase.Pack(o, layers...)
	ts.Setenv("DIGEST", p.Digest())
	if dir, ok := strings.CutPrefix(args[0], "layout:"); ok {
		ts.Check(os.MkdirAll(ts.MkAbs(dir), 0o700))
		ts.Check(imagecase.Layout(ts.MkAbs(dir), map[string]imagecase.Packed{"app:1": p}))
		return
	}
	if file, ok := strings.CutPrefix(args[0], "saved:"); ok {
		ts.Check(os.WriteFile(ts.MkAbs(file), imagecase.Saved(true, map[string]imagecase.Packed{"app:1": p}, map[string][][]byte{"app:1": layers}), 0o600))
		return
	}
	push(ts, args[0], p)
}

// push puts the parts of an image into a registry: HOST/REPOSITORY:TAG.
func push(ts *testscript.TestScript, target string, p imagecase.Packed) {
	host, rest, _ := strings.Cut(target, "/")
	repository, tag, _ := strings.Cut(rest, ":")
	send := func(method, path, kind string, b []byte) {
		r, err := http.NewRequest(method, "http://"+host+"/v2/"+repository+path, bytes.NewReader(b))
		ts.Check(err)
		r.Header.Set("Content-Type", kind)
		answer, err := (&http.Client{Timeout: 5 * time.Minute}).Do(r)
		ts.Check(err)
		answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			ts.Fatalf("%s %s: %s", method, path, answer.Status)
		}
	}
	for d, b := range p.Blobs {
		if d != p.Digest() {
			send(http.MethodPost, "/blobs/uploads/?digest="+d, "application/octet-stream", b)
		}
	}
	send(http.MethodPut, "/manifests/"+tag, p.MediaType, p.Root)
}
