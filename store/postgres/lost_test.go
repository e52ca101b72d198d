package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
)

// A wire stands between a store and its server, and is cut where a test says.
type wire struct {
	server string
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // false: what comes is not handed on
	ended bool              // no connection is taken any more
	word  string
	cut   cut
}

// A cut says what becomes of a message that holds the word.
type cut int

const (
	unsent     cut = iota + 1 // it does not reach the server
	unanswered                // it does, and the answer is lost
	forever                   // it does not, and the server is never reached again
	unheard                   // it does, and the server is never reached again
)

// wired returns a wire to the server at address, and the address of its other end.
func wired(t *testing.T, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	dir, err := os.MkdirTemp("", "wire") // the name of t.TempDir could hold a comma, which stands between hosts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &wire{server: filepath.Join(q.Get("host"), ".s.PGSQL.5432"), conns: map[net.Conn]bool{}}
	if w.listen, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		_ = w.listen.Close()
		w.end()
		w.wg.Wait()
	})
	return w, u.String()
}

// at cuts the wire at the next message that holds word.
func (w *wire) at(word string, c cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.word, w.cut = word, c
}

// end cuts every connection that there is.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
}

// silence has every connection that there is hand on nothing any more, and tell nobody.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		w.conns[c] = false
	}
}

func (w *wire) speaks(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[c]
}

func (w *wire) accept() {
	for {
		client, err := w.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", w.server)
		w.mu.Lock()
		if err != nil || w.ended {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			w.mu.Unlock()
			continue
		}
		w.conns[client], w.conns[server] = true, true
		w.mu.Unlock()
		deaf := make(chan struct{})
		w.wg.Go(func() {
			defer client.Close()
			defer server.Close()
			w.copy(server, client, deaf)
		})
		w.wg.Go(func() {
			defer client.Close()
			b := make([]byte, 64<<10)
			for {
				n, err := server.Read(b)
				if err != nil {
					return
				}
				select {
				case <-deaf:
					return // with the answer in hand
				default:
				}
				if !w.speaks(server) {
					continue
				}
				if _, err := client.Write(b[:n]); err != nil {
					return
				}
			}
		})
	}
}

// copy hands on what the client says, until the cut.
func (w *wire) copy(server, client net.Conn, deaf chan struct{}) {
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		w.mu.Lock()
		c := w.cut
		if c != 0 && bytes.Contains(bytes.ToLower(b[:n]), []byte(w.word)) {
			w.cut = 0
			w.ended = c == forever || c == unheard
		} else {
			c = 0
		}
		w.mu.Unlock()
		switch c {
		case unsent, forever:
			return
		case unanswered, unheard:
			close(deaf)
		}
		if !w.speaks(client) {
			continue
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

// TestLost: R16, a connection that is lost costs what was under way or nothing,
// and nobody is told that an entry stands in the log, or that it does not, before
// that is known.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name     string
		word     string
		cut      cut
		made     bool // the append succeeds
		kept     bool // its entry is in the log
		poisoned bool
	}{
		{"before the commit is sent on", "commit", unsent, false, false, false},
		{"before the commit is answered", "commit", unanswered, true, true, false},
		{"at the commit for ever, unsent", "commit", forever, false, false, true},
		{"at the commit for ever, unanswered", "commit", unheard, false, true, true},
		{"in the middle of a change", "entry to lose", unsent, false, false, false},
		{"in the middle of a change, unanswered", "entry to lose", unanswered, false, false, false},
		{"as it begins", "begin", unsent, true, true, false},
		{"as it begins, unanswered", "begin", unanswered, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			direct := pgserver.New(t)
			w, address := wired(t, direct)
			timeout := 5 * time.Minute
			if tt.poisoned {
				timeout = 20 * time.Second // to be waited for, and long enough for all that succeeds
			}
			s, err := postgres.Open(t.Context(), address, postgres.Options{Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			log := audit.NewLog(s)
			appendTo(t, log, "first")
			w.at(tt.word, tt.cut)
			_, err = log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: "entry to lose"})
			switch {
			case tt.made && err != nil:
				t.Errorf("the append says %v, and its entry is in the log", err)
			case !tt.made && !errors.Is(err, audit.ErrUnavailable):
				t.Errorf("the append says %v, want %q", err, audit.ErrUnavailable)
			case errors.Is(err, store.ErrPoisoned) != tt.poisoned:
				t.Errorf("the append says %v; that nothing is taken any more is %v, want %v", err, !tt.poisoned, tt.poisoned)
			case err != nil && strings.Contains(err.Error(), pgserver.Password):
				t.Errorf("the error tells the password: %v", err)
			}
			w.mu.Lock()
			if w.cut != 0 {
				t.Error("the wire was not cut")
			}
			w.mu.Unlock()
			if tt.poisoned {
				if _, again := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal}); !errors.Is(again, store.ErrPoisoned) {
					t.Errorf("the next append says %v, want %q", again, store.ErrPoisoned)
				}
			} else {
				appendTo(t, log, "last")
			}
			fresh := open(t, direct)
			defer fresh.Close()
			var subjects []string
			for leaf, err := range audit.NewLog(fresh).Entries(t.Context(), "", 0) {
				if err != nil {
					t.Fatal(err)
				}
				subjects = append(subjects, leaf.Entry.Subject)
			}
			want := []string{"first"}
			if tt.kept {
				want = append(want, "entry to lose")
			}
			if !tt.poisoned {
				want = append(want, "last")
			}
			if got := strings.Join(subjects, ", "); got != strings.Join(want, ", ") {
				t.Errorf("the log has %s, want %s", got, strings.Join(want, ", "))
			}
			verified(t, audit.NewLog(fresh))
		})
	}
}

// TestIdleConnectionCut: that the connection of changes was cut while nobody used
// it is noticed by nobody.
func TestIdleConnectionCut(t *testing.T) {
	w, address := wired(t, pgserver.New(t))
	s := open(t, address)
	defer s.Close()
	log := audit.NewLog(s)
	for range 3 {
		appendTo(t, log, "entry")
		w.end()
	}
	if n := verified(t, log); n != 3 {
		t.Errorf("the log has %d entries, want 3", n)
	}
}

// TestSilentConnections: connections that died while nobody used them, of which nobody
// said so, are found when they are needed, and cost no call more than a moment.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	w, address := wired(t, pgserver.New(t))
	s, err := postgres.Open(t.Context(), address, postgres.Options{Timeout: long, BusyTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := audit.NewLog(s)
	appendTo(t, log, "entry")
	for n := range uint64(2) {
		verified(t, log)
		w.silence()
		time.Sleep(1100 * time.Millisecond) // they are asked when they were not used for a second
		if f, err := s.Tip(t.Context()); err != nil || f.Size() != n+1 {
			t.Errorf("the log has %d entries, %v; want %d", f.Size(), err, n+1)
		}
		appendTo(t, log, "entry")
	}
	if n := verified(t, log); n != 3 {
		t.Errorf("the log has %d entries, want 3", n)
	}
}

// TestServerCrash: what was acknowledged before the server crashed is there when
// it runs again, with the store that was open all the time.
func TestServerCrash(t *testing.T) {
	server := pgserver.Shared(t)
	s := open(t, pgserver.New(t))
	defer s.Close()
	log := audit.NewLog(s)
	var mu sync.Mutex
	acked := map[string]bool{}
	stop := make(chan struct{})
	started := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				subject := string(rune('a'+c)) + strings.Repeat("i", i%7) + time.Now().Format(time.RFC3339Nano)
				_, err := log.Append(context.Background(), audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: subject})
				mu.Lock()
				if err == nil {
					acked[subject] = true
				}
				n := len(acked)
				mu.Unlock()
				if errors.Is(err, store.ErrPoisoned) {
					t.Errorf("the server came back, and the store says %v", err)
					return
				}
				if n > 50 {
					select {
					case started <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	<-started
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	appendTo(t, log, "after it")
	for leaf, err := range log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		delete(acked, leaf.Entry.Subject)
	}
	if len(acked) > 0 {
		t.Errorf("%d entries were acknowledged and are not in the log", len(acked))
	}
	verified(t, log)
}

// verified returns the number of entries of a log that adds up.
func verified(t testing.TB, log *audit.Log) uint64 {
	t.Helper()
	tree, err := log.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Size
}

func appendTo(t testing.TB, log *audit.Log, subject string) {
	t.Helper()
	if _, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: subject}); err != nil {
		t.Fatal(err)
	}
}
