//go:build linux

package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/image/oci"
	ic "github.com/tracon-go/tracon/internal/imagecase"
)

// A drip is a body of which so many bytes come at each beat, until left is zero.
type drip struct {
	ctx  context.Context // of the request, as of a body of net/http
	beat time.Duration
	some int
	left int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	beat := time.NewTimer(d.beat)
	defer beat.Stop()
	select {
	case <-beat.C:
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	n := min(len(p), d.some, d.left)
	d.left -= n
	return n, nil
}

func (d *drip) Close() error { return nil }

// TM-23: a registry has no pull wait for ever: not by silence, and not by one byte each
// time before that would be one. A slow line, and who reads slowly, are not taken for it.
func TestWatched(t *testing.T) {
	for _, tc := range []struct {
		name    string
		beat    time.Duration
		some    int
		left    int
		reading time.Duration // that the reader takes between two reads
		silent  bool
	}{
		{"at once", 0, 32 << 10, 1 << 20, 0, false},
		{"a slow line", time.Second, slowest + 1, 500 * slowest, 0, false},
		{"a pause", waiting - time.Second, slowest, slowest, 0, false},
		{"who reads slowly", 0, 32 << 10, 128 << 10, time.Hour, false},
		{"nothing", waiting + time.Second, slowest, 1 << 20, 0, true},
		{"a byte each time", waiting - time.Second, 1, 1 << 20, 0, true},
		{"too slowly on the whole", time.Second, slowest / 2, 1 << 30, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{waiting: waiting}
				r, err := s.watched(t.Context(), func(ctx context.Context) (io.ReadCloser, error) {
					return &drip{ctx, tc.beat, tc.some, tc.left}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				since, read := time.Now(), 0
				for p := make([]byte, 32<<10); err == nil; time.Sleep(tc.reading) { // of the bubble
					var n int
					n, err = r.Read(p)
					read += n
				}
				if tc.silent != errors.Is(err, errSilent) || !tc.silent && (err != io.EOF || read != tc.left) {
					t.Errorf("%d of %d bytes, %v; want it stopped: %v", read, tc.left, err, tc.silent)
				}
				if took := time.Since(since); tc.silent && took > 3*waiting {
					t.Errorf("it was stopped after %s", took)
				}
			})
		})
	}
	// … nor by an answer that never begins, whatever it is that is asked for.
	synctest.Test(t, func(t *testing.T) {
		s := &source{waiting: waiting}
		_, err := s.watched(t.Context(), func(ctx context.Context) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, errSilent) {
			t.Errorf("one that never begins: %v", err)
		}
	})
}

// TM-23: whatever it is of which the header comes and then nothing, the pull ends.
func TestSilent(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	for _, where := range []string{"/manifests/1", "/token", ic.Digest(p.Config), ic.Digest(p.Layers[1])} {
		t.Run(where, func(t *testing.T) {
			over := make(chan struct{})
			host := offer(t, p, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, where):
						w.Header().Set("Content-Type", ic.TypeManifest)
						_, _ = io.WriteString(w, "{")
						_ = http.NewResponseController(w).Flush()
						select {
						case <-r.Context().Done():
						case <-over:
						}
					case where == "/token":
						w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
						w.WriteHeader(http.StatusUnauthorized)
					default:
						h.ServeHTTP(w, r)
					}
				})
			})
			t.Cleanup(func() { close(over) })
			ref, err := parse(host + "/app:1")
			if err != nil {
				t.Fatal(err)
			}
			s, err := open(ref, plainHTTP)
			if err != nil {
				t.Fatal(err)
			}
			defer s.transport.CloseIdleConnections()
			s.waiting = 200 * time.Millisecond
			if strings.HasPrefix(where, "/") {
				_, err = s.resolve(t.Context())
			} else {
				var r io.ReadCloser
				r, err = s.Open(t.Context(), oci.Descriptor{MediaType: ic.TypeLayer, Digest: where, Size: 1 << 20})
				if err == nil {
					_, err = io.Copy(io.Discard, r)
					r.Close()
				}
			}
			if !errors.Is(err, errSilent) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
