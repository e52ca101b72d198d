package limit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serve serves h on a real connection until the test ends, with the room for
// connections.
func serve(t *testing.T, h http.Handler, most, each int) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server(h, nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(Listener(l, most, each)) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// get asks over c and returns the status; it stays open.
func get(c net.Conn) (int, error) {
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		return 0, err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, errors.Join(err, r.Body.Close())
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

// B10: a machine that holds its share of connections is turned away, the others are
// not; a connection that ends gives its place back.
func TestListenerShare(t *testing.T) {
	address := serve(t, ok, 0, 2)
	first, second := dial(t, address), dial(t, address)
	for _, c := range []net.Conn{first, second} {
		if status, err := get(c); err != nil || status != 200 {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if _, err := get(dial(t, address)); err == nil {
		t.Error("a third connection was served")
	}
	_ = first.Close()
	for { // until the server has seen it
		if status, err := get(dial(t, address)); err == nil && status == 200 {
			break
		}
	}
	if status, err := get(second); err != nil || status != 200 {
		t.Errorf("a connection that was there: %d, %v", status, err)
	}
}

// Machines are told apart as their networks give addresses out.
func TestMachine(t *testing.T) {
	at := func(s string) netip.Prefix { return machine(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s))) }
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"ports", "192.0.2.1:1", "192.0.2.1:2", true},
		{"addresses", "192.0.2.1:1", "192.0.2.2:1", false},
		{"one mapped", "192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		{"one network of IPv6", "[2001:db8::1]:1", "[2001:db8::2]:1", true},
		{"two networks of IPv6", "[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
	} {
		if got := at(tt.a) == at(tt.b); got != tt.same {
			t.Errorf("%s: %s and %s are one machine: %v, want %v", tt.name, tt.a, tt.b, got, tt.same)
		}
	}
	if machine(&net.UnixAddr{Name: "s"}) != (netip.Prefix{}) {
		t.Error("a socket has an address")
	}
}

// B10: garbage, a header too long and a body that is announced and never sent get
// their answer or none, and others are served meanwhile.
func TestGarbage(t *testing.T) {
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}), 0, 0)
	for _, tt := range []struct{ name, sent, want string }{
		{"bytes", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400"},
		{"no request", "hello\r\n\r\n", "HTTP/1.1 400"},
		{"two lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		{"a header too long", "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 2*HeaderBytes) + "\r\n\r\n", "HTTP/1.1 431"},
		{"a chunk that is none", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 200"},
		{"a coding that is none", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501"},
	} {
		c := dial(t, address)
		go func() { _, _ = io.WriteString(c, tt.sent) }()
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, tt.want) {
			t.Errorf("%s: %q, %v; want %s", tt.name, line, err, tt.want)
		}
	}
	hanging := dial(t, address)
	if _, err := io.WriteString(hanging, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, err := get(dial(t, address)); err != nil || status != 200 {
		t.Errorf("beside it: %d, %v", status, err)
	}
}

// B10: who sends no header, or asks no more, is left after the time for it.
func TestServerWaitsForNobody(t *testing.T) {
	s := Server(ok, nil)
	if s.ReadHeaderTimeout != HeaderTime || s.IdleTimeout != IdleTime || s.MaxHeaderBytes <= 0 || s.HTTP2.MaxConcurrentStreams <= 0 {
		t.Errorf("%+v", s)
	}
}

// slow is an answer of which nobody knows whether it was taken; it has deadlines.
type slow struct {
	header   http.Header
	body     bytes.Buffer
	deadline time.Time
	read     time.Time     // the deadline of the body
	pace     time.Duration // in which 64 KiB are taken
}

func (s *slow) Header() http.Header { return s.header }
func (s *slow) WriteHeader(int)     {}
func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(s.pace * time.Duration(len(b)) / (64 << 10))
	if time.Now().After(s.deadline) {
		return 0, context.DeadlineExceeded
	}
	return s.body.Write(b)
}
func (s *slow) SetWriteDeadline(at time.Time) error { s.deadline = at; return nil }
func (s *slow) SetReadDeadline(at time.Time) error  { s.read = at; return nil }
func (s *slow) Flush()                              {}

// B10: each part of an answer has its time; an answer that takes an hour because its
// parts do is whole.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{header: http.Header{}}
		Patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 60 {
				time.Sleep(time.Minute)
				if _, err := io.WriteString(w, "x"); err != nil {
					t.Fatal(err)
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
		}), WriteTime).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.body.Len() != 60 {
			t.Errorf("%d parts, want 60", w.body.Len())
		}
		if left := time.Until(w.deadline); left != WriteTime {
			t.Errorf("what is buffered behind the handler has %v, want %v", left, WriteTime)
		}
	})
}

// B10: one large piece of an answer does not have the time of one part: who takes it
// slowly and steadily gets it whole.
func TestPatientWithLargePieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, large := &slow{header: http.Header{}, pace: time.Second}, make([]byte, 24<<20+1)
		Patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.Write(large); n != len(large) || err != nil {
				t.Errorf("%d bytes, %v; want %d", n, err, len(large))
			}
			if n, err := w.Write(nil); n != 0 || err != nil {
				t.Errorf("nothing: %d bytes, %v", n, err)
			}
		}), WriteTime).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.body.Len() != len(large) {
			t.Errorf("%d bytes were taken, want %d", w.body.Len(), len(large))
		}
	})
}

// B10: a body that was read to its end has no deadline, else it would end what runs
// on; one that was not has one from the answer on.
func TestPatientWithBodies(t *testing.T) {
	for _, tt := range []struct {
		name string
		body io.Reader
		read bool
		want time.Duration // zero: none
	}{
		{"none", nil, false, 0},
		{"read", strings.NewReader("body"), true, 0},
		{"not read", strings.NewReader("body"), false, WriteTime / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slow{header: http.Header{}}
				Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.read {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					time.Sleep(time.Minute)
					_, _ = io.WriteString(w, "x")
				}), WriteTime).ServeHTTP(w, httptest.NewRequest("POST", "/", tt.body))
				if got := time.Until(w.read); tt.want == 0 && !w.read.IsZero() || tt.want != 0 && got != tt.want {
					t.Errorf("the body has %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// B10: a stranger who announces a body, is refused and sends nothing is let go:
// whether the answer is short or long, whatever the body's form.
func TestUnsentBodyIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: HeaderTime, Handler: Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		if r.URL.Path == "/long" {
			_, _ = w.Write(make([]byte, 1<<20))
		}
	}), time.Second)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for _, head := range []string{
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /long HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n",
	} {
		c := dial(t, l.Addr().String())
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute)) // the guard
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q is still held", head)
		}
	}
}
