package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store/memstore"
)

// A log is a log with what proves it.
type log struct {
	*audit.Log
	key    audit.SigningKey
	hashes []audit.Hash
}

func newLog(t testing.TB, entries int, subject string) *log {
	t.Helper()
	key, err := audit.NewSigningKey("tracon/test")
	if err != nil {
		t.Fatal(err)
	}
	l := &log{Log: audit.NewLog(memstore.New()), key: key}
	for i := range entries {
		r, err := l.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Refusal, Subject: fmt.Sprint(subject, i)})
		if err != nil {
			t.Fatal(err)
		}
		more, err := audit.InnerHashes(uint64(i), r.Hash(), l.read)
		if err != nil {
			t.Fatal(err)
		}
		l.hashes = append(l.hashes, more...)
	}
	return l
}

func (l *log) read(at []int64) ([]audit.Hash, error) {
	var out []audit.Hash
	for _, i := range at {
		out = append(out, l.hashes[i])
	}
	return out, nil
}

func (l *log) at(t testing.TB, size uint64) audit.Checkpoint {
	t.Helper()
	root, err := audit.RootOf(size, l.read)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.key.Checkpoint(audit.Tree{Size: size, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (l *log) prove(after uint64) func(uint64) ([]audit.Hash, error) {
	return func(before uint64) ([]audit.Hash, error) { return audit.ProveConsistency(before, after, l.read) }
}

func newServer(t testing.TB, dir string, logs ...*log) *Server {
	t.Helper()
	var keys []audit.PublicKey
	for _, l := range logs {
		keys = append(keys, l.key.Public())
	}
	s, err := NewServer(dir, "witness", keys, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends one request and returns the answer.
func ask(t testing.TB, s *Server, r request) (int, string, string) {
	t.Helper()
	return s.add(t.Context(), r.encode())
}

func client(t testing.TB, s *Server) *Client {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	c, err := Parse(h.URL + " " + s.Key().String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// C2SP tlog-witness: each request has the answer that the protocol gives it.
func TestServer(t *testing.T) {
	l, stranger := newLog(t, 20, "a"), newLog(t, 5, "a")
	unknown, err := audit.NewSigningKey("another")
	if err != nil {
		t.Fatal(err)
	}
	other := &log{key: unknown, hashes: stranger.hashes}
	forked := newLog(t, 20, "b")
	forked.key = l.key
	proof := func(l *log, before, after uint64) []audit.Hash {
		p, err := audit.ProveConsistency(before, after, l.read)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	tests := []struct {
		name   string
		req    request
		status int
		answer string
	}{
		{"the first, of something", request{0, nil, l.at(t, 7).Note}, 200, "— witness "},
		{"the same again, from nothing", request{0, nil, l.at(t, 7).Note}, 409, "7\n"},
		{"the same again", request{7, nil, l.at(t, 7).Note}, 200, "— witness "},
		{"more", request{7, proof(l, 7, 13), l.at(t, 13).Note}, 200, "— witness "},
		{"back", request{7, nil, l.at(t, 7).Note}, 409, "13\n"},
		{"old is more than new", request{13, nil, l.at(t, 7).Note}, 400, "old is more"},
		{"no proof", request{13, nil, l.at(t, 20).Note}, 422, "the proof"},
		{"another proof", request{13, proof(l, 7, 20), l.at(t, 20).Note}, 422, "the proof"},
		{"another log under its name", request{13, proof(forked, 13, 20), forked.at(t, 20).Note}, 422, "the proof"},
		{"another tree of that size", request{13, nil, forked.at(t, 13).Note}, 409, "13\n"},
		{"an unknown log", request{0, nil, other.at(t, 5).Note}, 404, "does not know"},
		{"not signed by its key", request{13, nil, stranger.at(t, 5).Note}, 403, "no signature"},
		{"no checkpoint", request{0, nil, []byte("x")}, 400, "not a checkpoint"},
		{"and on", request{13, proof(l, 13, 20), l.at(t, 20).Note}, 200, "— witness "},
	}
	dir := t.TempDir()
	for _, tt := range tests {
		// What it saw is on the disk: the next process goes on from there.
		s := newServer(t, dir, l)
		status, contentType, answer := ask(t, s, tt.req)
		if status != tt.status || !strings.Contains(answer, tt.answer) || (contentType == sizeType) != (status == 409) {
			t.Errorf("%s: got %d %s %q, want %d %q", tt.name, status, contentType, answer, tt.status, tt.answer)
		}
		if at, ok := s.Key().Cosigned(append(bytes.Clone(tt.req.note), answer...)); ok != (status == 200) || ok && time.Since(at) > time.Hour {
			t.Errorf("%s: cosigned %v at %v", tt.name, ok, at)
		}
	}
}

// Fail closed: a witness that cannot read or keep what it saw signs nothing.
func TestServerFails(t *testing.T) {
	l := newLog(t, 9, "a")
	dir := t.TempDir()
	s := newServer(t, dir, l)
	if status, _, _ := ask(t, s, request{0, nil, l.at(t, 5).Note}); status != 200 {
		t.Fatal(status)
	}
	file := s.file(l.key.Origin())
	for _, bad := range []string{"", "{}", `{"origin":"x","size":1}`, `{"origin":"tracon/test","size":5,"root":"` + l.at(t, 5).Tree.Root.String() + `","SIZE":1}`, "{", strings.Repeat("x", 100_000)} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, answer := ask(t, s, request{5, nil, l.at(t, 5).Note}); status != 500 || strings.Contains(answer, dir) {
			t.Errorf("what it saw is %.20q: got %d %q", bad, status, answer)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := ask(t, s, request{0, nil, l.at(t, 5).Note}); status != 500 {
		t.Errorf("what it saw is a folder: got %d", status)
	}
	if err := os.WriteFile(filepath.Join(dir, "witness.key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewServer(dir, "witness", nil, nil); !errors.Is(err, ErrKey) {
		t.Errorf("a key that is none: got %v", err)
	}
}

// HTTP: one path, one method, a bounded body.
func TestHTTP(t *testing.T) {
	s := newServer(t, t.TempDir(), newLog(t, 1, "a"))
	h := httptest.NewServer(s)
	defer h.Close()
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", path, "", 405}, {"POST", "/", "", 404}, {"POST", path, "", 400},
		{"GET", lastPath("tracon/test"), "", 404}, {"POST", lastPath("tracon/test"), "", 404}, {"GET", "/last/x", "", 404}, {"GET", "/last/../witness.key", "", 404},
		{"POST", path, "old 0\n\n" + strings.Repeat("x", maxRequest), 400}, {"POST", path + "/", "", 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, h.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != tt.want {
			t.Errorf("%s %s: got %d, %v; want %d", tt.method, tt.path, answer.StatusCode, err, tt.want)
		}
	}
	for _, bad := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "localhost:0", "127.0.0.1"} {
		if l, err := Listen(bad); err == nil {
			t.Errorf("it listens at %s", bad)
			_ = l.Close()
		}
	}
}

// It serves until it is told to end.
func TestServe(t *testing.T) {
	l := newLog(t, 3, "a")
	s := newServer(t, t.TempDir(), l)
	at, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, at) }()
	c, err := Parse("http://" + at.Addr().String() + "/ " + s.Key().String())
	if err != nil {
		t.Fatal(err)
	}
	cp := l.at(t, 3)
	line, err := c.Cosign(t.Context(), cp, l.prove(3))
	if err != nil || !c.Cosigned(append(bytes.Clone(cp.Note), line...)) || c.Cosigned(cp.Note) || c.Name() != "witness" {
		t.Errorf("got %q, %v", line, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// B7: a log that was rolled back, or is another one, is told so by whoever saw it.
func TestClient(t *testing.T) {
	l := newLog(t, 20, "a")
	forked := newLog(t, 20, "b")
	forked.key = l.key
	s := newServer(t, t.TempDir(), l)
	for _, size := range []uint64{3, 3, 8, 20} {
		// A client that knows nothing, and one that asked before.
		for _, c := range []*Client{client(t, s), client(t, s)} {
			for range 2 {
				if _, err := c.Cosign(t.Context(), l.at(t, size), l.prove(size)); err != nil {
					t.Fatalf("size %d: %v", size, err)
				}
			}
		}
	}
	c := client(t, s)
	longer := newLog(t, 30, "b")
	longer.key = l.key
	for _, tt := range []struct {
		name string
		log  *log
		size uint64
		says string
	}{
		{"rolled back", l, 8, "20 entries, and it was shown 8"},
		{"another log of that size", forked, 20, "20 other entries"},
		{"another log that is longer", longer, 30, "other entries among the first 20"},
	} {
		_, err := c.Cosign(t.Context(), tt.log.at(t, tt.size), tt.log.prove(tt.size))
		o, ok := errors.AsType[*Objection](err)
		if !ok || !strings.Contains(o.Error(), tt.says) || errors.Is(err, audit.ErrBroken) {
			t.Errorf("%s: got %v, want an objection: %s", tt.name, err, tt.says)
			continue
		}
		// What it says is a hint; what it shows is signed by it.
		if shown, err := audit.ParseCheckpoint(o.Shows()); err != nil || shown.Tree != l.at(t, 20).Tree || !c.Cosigned(o.Shows()) {
			t.Errorf("%s: it shows %q, %v", tt.name, o.Shows(), err)
		}
	}
}

// A size that somebody on the way made up proves nothing: an objection without the
// witness's signature shows nothing.
func TestForgedObjection(t *testing.T) {
	l := newLog(t, 20, "a")
	s := newServer(t, t.TempDir(), l)
	forger := newServer(t, t.TempDir(), l)
	if status, _, _ := ask(t, forger, request{0, nil, l.at(t, 20).Note}); status != 200 {
		t.Fatal(status)
	}
	for name, shows := range map[string]http.HandlerFunc{
		"nothing":                     http.NotFound,
		"what another witness signed": forger.ServeHTTP,
		"what the log alone signed":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(l.at(t, 20).Note) },
		"much":                        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) },
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				shows(w, r)
				return
			}
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte("20\n"))
		}))
		c, err := Parse(h.URL + " " + s.Key().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Cosign(t.Context(), l.at(t, 5), l.prove(5))
		if o, ok := errors.AsType[*Objection](err); !ok || o.Shows() != nil {
			t.Errorf("%s: got %v, and it proves something", name, err)
		}
		h.Close()
	}
}

// A witness that answers nonsense is an error, and none that means a loss.
func TestClientRefuses(t *testing.T) {
	l := newLog(t, 5, "a")
	s := newServer(t, t.TempDir(), l)
	key := s.Key()
	text, _ := split(l.at(t, 5).Note)
	kept, tomorrow := s.key.cosign(text, time.Now().Add(-Fresh-time.Minute)), s.key.cosign(text, time.Now().Add(24*time.Hour))
	other := newServer(t, t.TempDir(), l)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"nothing":  func(http.ResponseWriter, *http.Request) {},
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"another's":          other.ServeHTTP,
		"one that was kept":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(kept)) },
		"one of tomorrow":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tomorrow)) },
		"no size":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409); _, _ = w.Write([]byte("-1\n")) },
		"a size that is old": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409); _, _ = w.Write([]byte("0\n")) },
		"much":               func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) },
	} {
		h := httptest.NewServer(http.HandlerFunc(answer))
		c, err := Parse(h.URL + " " + key.String())
		if err != nil {
			t.Fatal(err)
		}
		if line, err := c.Cosign(t.Context(), l.at(t, 5), l.prove(5)); err == nil || errors.Is(err, audit.ErrBroken) || line != nil {
			t.Errorf("%s: got %q, %v", name, line, err)
		}
		h.Close()
	}
	for _, bad := range []string{"", "http://x", "http://x " + key.String(), "http://192.0.2.1 " + key.String(), "http://localhost " + key.String(), "http://127.0.0.1.example.org " + key.String(), "ftp://x " + key.String(), "https://x?y " + key.String(), "https://u:p@x " + key.String(), "https://x " + string(l.key.Public()), "https://x " + key.String() + "x"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) takes it", bad)
		}
	}
}

// Two hosts with one log race to the witness: it goes forward only.
func TestRace(t *testing.T) {
	l := newLog(t, 40, "a")
	s := newServer(t, t.TempDir(), l)
	var wg sync.WaitGroup
	for size := uint64(1); size <= 40; size++ {
		wg.Go(func() {
			old := uint64(0)
			for {
				r := request{old: old, note: l.at(t, size).Note}
				if old > 0 && old < size {
					r.proof, _ = audit.ProveConsistency(old, size, l.read)
				}
				status, _, answer := s.add(context.Background(), r.encode())
				if status == 200 {
					return
				}
				n, ok := plainNumber(strings.TrimSuffix(answer, "\n"))
				if status != 409 || !ok || n <= old && old > 0 {
					t.Errorf("size %d from %d: %d %q", size, old, status, answer)
					return
				}
				if n > size {
					return // somebody was faster
				}
				old = n
			}
		})
	}
	wg.Wait()
	if last, err := s.last(l.key.Origin()); err != nil || last.Size != 40 {
		t.Errorf("it saw %+v, %v at last", last, err)
	}
}

// A key comes back from its text; a bent cosignature shows.
func TestCosignature(t *testing.T) {
	k, err := NewSigningKey("witness.example.org")
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseSigningKey(k.Secret())
	if err != nil || back.Public().String() != k.Public().String() {
		t.Fatalf("got %v, %v", back, err)
	}
	if s := fmt.Sprintf("%v %s", k, k); strings.Contains(s, "PRIVATE") {
		t.Errorf("the secret is in %q", s)
	}
	public, err := ParsePublicKey(k.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1796000000, 0)
	line := strings.TrimSuffix(k.cosign("text\n", at), "\n")
	if got, err := public.verify("text\n", line); err != nil || !got.Equal(at) {
		t.Errorf("got %v, %v", got, err)
	}
	for i := range line {
		bent := []byte(line)
		bent[i] ^= 1
		if _, err := public.verify("text\n", string(bent)); err == nil {
			t.Errorf("with byte %d changed it holds", i)
		}
	}
	if _, err := public.verify("text", line); err == nil {
		t.Error("it holds for another text")
	}
	for _, bad := range []string{"", "a+b+c", strings.Replace(k.Public().String(), "+", "+0", 1), string(newLog(t, 0, "").key.Public())} {
		if _, err := ParsePublicKey(bad); !errors.Is(err, ErrKey) {
			t.Errorf("ParsePublicKey(%q): got %v", bad, err)
		}
	}
	for _, name := range []string{"", "a b", "a+b"} {
		if _, err := NewSigningKey(name); err == nil {
			t.Errorf("a witness is named %q", name)
		}
	}
}

func FuzzRequest(f *testing.F) {
	l := newLog(f, 9, "a")
	p, err := audit.ProveConsistency(3, 9, l.read)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(request{3, p, l.at(f, 9).Note}.encode())
	f.Add([]byte("old 0\n\nx"))
	s := newServer(f, f.TempDir(), l)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decode(b); err == nil && !bytes.Equal(r.encode(), b) {
			t.Errorf("a request has two texts:\n%q\n%q", b, r.encode())
		}
		status, _, _ := s.add(t.Context(), b)
		if status == 500 {
			t.Errorf("the witness fails on %q", b)
		}
	})
}
