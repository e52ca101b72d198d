package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
)

// with returns address with the query's parameter key set to value.
func with(t *testing.T, address, key, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestAddresses: zero is closed. An address that does not say how the connection
// is protected is refused, and no error tells the password or a part of it,
// wherever a mistake has put it.
func TestAddresses(t *testing.T) {
	const refused = "cannot be read"
	for _, tt := range []struct{ name, address, says string }{
		{"none", "", "no address"},
		{"a blank", "  ", "no address"},
		{"over a network, and nothing said", "postgres://u:hunter2@db.example/d", "sslmode=verify-full"},
		{"over a network, with prefer", "postgres://u:hunter2@db.example/d?sslmode=prefer", "sslmode=verify-full"},
		{"over a network, with allow", "postgres://u:hunter2@db.example/d?sslmode=allow", "sslmode=verify-full"},
		{"in words", "host=db.example user=u password=hunter2 dbname=d", "sslmode=verify-full"},
		{"one of two hosts is far", "postgres://u:hunter2@localhost,db.example/d?sslmode=prefer", "sslmode=verify-full"},
		{"an unknown sslmode", "postgres://u:hunter2@localhost/d?sslmode=hunter2", refused},
		{"a slash in the password", "postgres://u:hun/ter2@localhost/d", refused},
		{"a hash in the password", "postgres://u:12#hunter2@localhost/d", refused},
		{"a question mark in the password", "postgres://u:12?hunter2@localhost/d", refused},
		{"a percent in the password", "postgres://u:hunter2%@localhost/d", refused},
		{"a colon and a port", "postgres://localhost:hunter2/d", refused},
		{"a blank in the words", "host=localhost password = hunter2 hunter2", refused},
		{"another scheme", "mysql://u:hunter2@localhost/d", refused},
		{"nobody answers", "postgres://u:hunter2@localhost:1/d?sslmode=disable", "the database d of u at localhost:1 cannot be reached"},
		{"the wrong password", strings.Replace(pgserver.Shared(t).Address(), pgserver.Password, "hunter2", 1), "look at the user and the password"},
		{"another database", strings.Replace(pgserver.Shared(t).Address(), "/postgres", "/none", 1), "CREATE DATABASE"},
		{"another schema", pgserver.Shared(t).Address("search_path", "none"), "no schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := postgres.Open(t.Context(), tt.address, postgres.Options{BusyTimeout: time.Second})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ter2") {
				t.Errorf("Open says %v, want %q and nothing of the password", err, tt.says)
			}
			if name, err := postgres.Name(tt.address); err == nil && strings.Contains(name, "hunter2") || err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("its name is %q, %v: it tells the password", name, err)
			}
		})
	}
}

// TestServers: R16, a server that would lose what it acknowledged is refused, with the
// setting to change; and what a user or a database may set for itself is set back.
func TestServers(t *testing.T) {
	server := pgserver.Shared(t)
	// set has the server take a setting, and waits until it has.
	set := func(name, value string) {
		t.Helper()
		for _, q := range []string{`ALTER SYSTEM SET ` + name + ` = ` + value, `SELECT pg_reload_conf()`} {
			if _, err := server.SQL(q); err != nil {
				t.Fatal(err)
			}
		}
		for {
			got, err := server.SQL(`SHOW ` + name)
			if err != nil {
				t.Fatal(err)
			}
			if got == value {
				return
			}
		}
	}
	for _, tt := range []struct{ name, says string }{
		{"fsync", "fsync = on"},
		{"full_page_writes", "full_page_writes = on"},
	} {
		address := pgserver.New(t)
		set(tt.name, "off")
		s, err := postgres.Open(t.Context(), address, postgres.Options{})
		set(tt.name, "on")
		if err == nil {
			_ = s.Close()
			t.Errorf("it was opened with %s off", tt.name)
		} else if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("Open says %v, want %q", err, tt.says)
		}
	}
	reading := with(t, pgserver.New(t), "default_transaction_read_only", "on")
	if _, err := postgres.Open(t.Context(), reading, postgres.Options{}); !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "may only read") {
		t.Errorf("Open for reading says %v", err)
	}
	address := with(t, pgserver.New(t), "synchronous_commit", "off")
	s := open(t, address)
	defer s.Close()
	appendTo(t, audit.NewLog(s), "entry")
}

// TestOpenAtOnce: of many that open an empty database at once, one makes the tables.
func TestOpenAtOnce(t *testing.T) {
	address := pgserver.New(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), address, postgres.Options{})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			_, err = audit.NewLog(s).Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, address)
	defer s.Close()
	if n := verified(t, audit.NewLog(s)); n != 8 {
		t.Errorf("the log has %d entries, want 8", n)
	}
}

// TestVersions: tables of a newer version are refused and left alone; those of an
// older one are brought to this, but not under a process that has them open.
func TestVersions(t *testing.T) {
	address := pgserver.New(t)
	s := open(t, address)
	log := audit.NewLog(s)
	appendTo(t, log, "entry")
	db := raw(t, address)
	execSQL(t, db, `INSERT INTO schema_version (version_id, is_applied) VALUES (99, true)`)
	if _, err := postgres.Open(t.Context(), address, postgres.Options{}); !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("Open says %v, want %q", err, store.ErrNewer)
	}
	execSQL(t, db, `DELETE FROM schema_version WHERE version_id IN (99, (SELECT MAX(version_id) FROM schema_version WHERE version_id < 99))`)
	_, err := postgres.Open(t.Context(), address, postgres.Options{BusyTimeout: 100 * time.Millisecond})
	if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "stop that one first") {
		t.Errorf("Open says %v, want that the other process must be stopped", err)
	}
	appendTo(t, log, "the other process goes on")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The tables of the newest version are there, so making them again fails as a whole.
	if _, err := postgres.Open(t.Context(), address, postgres.Options{}); err == nil || errors.Is(err, store.ErrNewer) {
		t.Errorf("Open says %v, want what stands in the way", err)
	}
	if n := verified(t, audit.NewLog(reopened(t, address))); n != 2 {
		t.Errorf("the log has %d entries, want 2", n)
	}
}

// reopened opens a database whose version was set back, after it was set right.
func reopened(t *testing.T, address string) *postgres.Store {
	t.Helper()
	execSQL(t, raw(t, address), `INSERT INTO schema_version (version_id, is_applied) SELECT MAX(version_id) + 1, true FROM schema_version`)
	s := open(t, address)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestStoresShareALog: B9, the head of the log is read and locked inside of each
// transaction, so several processes write one log, and what one writes another reads.
func TestStoresShareALog(t *testing.T) {
	address := pgserver.New(t)
	stores := []*postgres.Store{open(t, address), open(t, address), open(t, address)}
	var wg sync.WaitGroup
	for _, s := range stores {
		log := audit.NewLog(s)
		for c := range 6 {
			wg.Go(func() {
				for i := range 30 {
					if _, err := log.Append(t.Context(), audit.Entry{Tenant: fmt.Sprint("tenant-", (c+i)%2), Kind: audit.Refusal}); err != nil {
						t.Errorf("append: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, s := range stores {
		if n := verified(t, audit.NewLog(s)); n != 540 {
			t.Errorf("the log has %d entries, want 540", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBusy: a change that another host keeps waiting too long fails, and the store
// goes on.
func TestBusy(t *testing.T) {
	address := pgserver.New(t)
	s, err := postgres.Open(t.Context(), address, postgres.Options{BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := audit.NewLog(s)
	tx, err := raw(t, address).BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT 1 FROM log_head FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	_, err = log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
	if !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, store.ErrPoisoned) || !strings.Contains(err.Error(), "another host") {
		t.Errorf("Append says %v, want audit.ErrUnavailable because of another host", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ { // a slow machine may keep it waiting once more
		_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrPoisoned) || try == 1000 {
			t.Fatal(err)
		}
	}
	if n := verified(t, log); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
}

// TestNameWithNUL: a name that PostgreSQL cannot hold stops nothing but its own change.
func TestNameWithNUL(t *testing.T) {
	s := open(t, pgserver.New(t))
	defer s.Close()
	log := audit.NewLog(s)
	_, err := log.Append(t.Context(), audit.Entry{Tenant: "a\x00b", Kind: audit.Refusal})
	if err == nil || errors.Is(err, store.ErrPoisoned) {
		t.Errorf("an entry of a tenant with NUL in its name: %v", err)
	}
	appendTo(t, log, "the next one")
}

// TestOneCommitForAll: those who wait while the head of the log is another host's share
// the commit of the one that came first, and not the next one.
func TestOneCommitForAll(t *testing.T) {
	address := pgserver.New(t)
	s, err := postgres.Open(t.Context(), address, postgres.Options{BusyTimeout: long, Timeout: long})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := audit.NewLog(s)
	db := raw(t, address)
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(`SELECT 1 FROM log_head FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	const callers = 64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if _, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal}); err != nil {
				t.Error(err)
			}
		})
	}
	// They wait, all of them, when each is in the select of the store's queue.
	stacks := make([]byte, 8<<20)
	for waiting := 0; waiting < callers && !t.Failed(); time.Sleep(time.Millisecond) {
		waiting = 0
		for one := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if first, _, _ := strings.Cut(one, "\n"); strings.Contains(first, "[select") && strings.Contains(one, "sqlstore.(*Store).make(") {
				waiting++
			}
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	var commits int
	if err := db.QueryRow(`SELECT COUNT(DISTINCT xmin::text) FROM leaf`).Scan(&commits); err != nil {
		t.Fatal(err)
	}
	if n := verified(t, log); n != callers || commits != 1 {
		t.Errorf("%d entries came in %d commits, want %d in one", n, commits, callers)
	}
}
