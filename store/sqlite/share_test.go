package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
)

// verified returns the number of entries of a log that adds up.
func verified(t testing.TB, log *audit.Log) uint64 {
	t.Helper()
	tree, err := log.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Size
}

// TestTwoStoresOnOneFile: B9, the head of the log is read inside of each
// transaction, so two that have the file open write one log.
func TestTwoStoresOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	stores := []*sqlite.Store{open(t, path), open(t, path)}
	var wg sync.WaitGroup
	for _, s := range stores {
		log := audit.NewLog(s)
		for c := range 6 {
			wg.Go(func() {
				for i := range 30 {
					e := audit.Entry{Tenant: []string{"acme", "umbrella"}[(c+i)%2], Kind: audit.Refusal}
					if _, err := log.Append(t.Context(), e); err != nil {
						t.Errorf("append: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, s := range stores {
		if n := verified(t, audit.NewLog(s)); n != 360 {
			t.Errorf("the log has %d entries, want 360", n)
		}
	}
	// What one writes the other reads at once, and compares with.
	one, two := stores[0], stores[1]
	set := func(s *sqlite.Store, after int64) error {
		_, err := audit.NewLog(s).Commit(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Policy},
			func(ctx context.Context, p audit.Pending) error {
				return s.SetPolicy(ctx, "acme", gate.Policy{Enabled: true}, after, p)
			})
		return err
	}
	if err := set(one, 0); err != nil {
		t.Fatal(err)
	}
	if p, n, err := two.PolicyAt(t.Context(), "acme"); err != nil || n != 1 || !p.Enabled {
		t.Errorf("the other store has the policy %+v of revision %d, error %v", p, n, err)
	}
	if err := set(two, 0); !errors.Is(err, grant.ErrConflict) {
		t.Errorf("the other store's change after revision 0 says %v, want a conflict", err)
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenAtOnce: of many that open a new file at once, one makes the tables.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
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
	s := open(t, path)
	defer s.Close()
	if n := verified(t, audit.NewLog(s)); n != 8 {
		t.Errorf("the log has %d entries, want 8", n)
	}
}

// locked takes the write lock, as another process that writes does.
func locked(t *testing.T, path string) (release func()) {
	t.Helper()
	db := raw(t, path)
	execSQL(t, db, `BEGIN IMMEDIATE`)
	return func() {
		t.Helper()
		execSQL(t, db, `ROLLBACK`)
	}
}

// TestBusy: a change that another process keeps waiting too long fails, and the
// store goes on.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := audit.NewLog(s)
	release := locked(t, path)
	_, err = log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
	if !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, store.ErrPoisoned) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("Append says %v, want audit.ErrUnavailable because of another process", err)
	}
	if _, err := s.Tip(t.Context()); err != nil {
		t.Errorf("a read while another process writes: %v", err)
	}
	release()
	appendTo(t, log, "after it")
	if n := verified(t, log); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
}

// TestCancelledInTheQueue: a caller that leaves before its change was begun gets
// the cause at once, and its change is not made.
func TestCancelledInTheQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, path)
	defer s.Close()
	log := audit.NewLog(s)
	release := locked(t, path)
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: fmt.Sprint(i)})
			if !errors.Is(err, gaveUp) {
				t.Errorf("the append says %v, want the cause", err)
			}
		})
	}
	kept := make(chan error)
	go func() {
		_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: "stays"})
		kept <- err
	}()
	cancel(gaveUp)
	wg.Wait() // while the lock is held
	release()
	if err := <-kept; err != nil {
		t.Errorf("the append of the caller who stayed: %v", err)
	}
	if n := verified(t, log); n != 1 {
		t.Errorf("the log has %d entries, want that of the caller who stayed", n)
	}
}

// TestRefusedAmongOthers: a change that is refused takes none of those with it
// that share its transaction.
func TestRefusedAmongOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, path)
	defer s.Close()
	log := audit.NewLog(s)
	release := locked(t, path) // so that they gather
	var wg sync.WaitGroup
	for i := range 60 {
		c, err := bundle.New([]bundle.File{{Path: "a.py", Data: []byte(fmt.Sprint(i))}}, nil, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		// Of three that take one id, two fail last of all, behind their content.
		g := grant.Grant{
			ID: fmt.Sprint("grant-", i/3), Ref: grant.Ref{Tenant: "acme", Skill: "skill", Script: fmt.Sprint(i)}, Pin: c.Digest(),
			Granted: time.Now(), MinTier: grant.Process,
		}
		wg.Go(func() {
			_, err := log.Commit(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Granted}, func(ctx context.Context, p audit.Pending) error {
				return s.AddGrant(ctx, g, c, "", p)
			})
			if err != nil && !errors.Is(err, grant.ErrConflict) {
				t.Errorf("grant %d: %v", i, err)
			}
		})
		wg.Go(func() { appendTo(t, log, "entry") })
	}
	release()
	wg.Wait()
	if n := verified(t, log); n != 80 {
		t.Errorf("the log has %d entries, want 60 appends and 20 grants", n)
	}
	grants, err := s.Grants(t.Context(), "acme", grant.Filter{})
	if err != nil || len(grants) != 20 {
		t.Errorf("%d grants, error %v; want 20", len(grants), err)
	}
	var contents int
	if err := raw(t, path).QueryRow(`SELECT COUNT(*) FROM content`).Scan(&contents); err != nil || contents != 20 {
		t.Errorf("%d contents, error %v; want 20: those of refused grants are not kept", contents, err)
	}
}

// TestCloseUnderWay: what was acknowledged before and during Close is there.
func TestCloseUnderWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, path)
	log := audit.NewLog(s)
	var wg sync.WaitGroup
	acked := make([]uint64, 32)
	started := make(chan struct{}, len(acked))
	for c := range acked {
		wg.Go(func() {
			for {
				_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				if acked[c]++; acked[c] == 5 {
					started <- struct{}{}
				}
			}
		})
		wg.Go(func() {
			for {
				if _, err := s.Tip(t.Context()); errors.Is(err, store.ErrClosed) {
					return
				} else if err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	for range acked {
		<-started
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	var want uint64
	for _, n := range acked {
		want += n
	}
	s = open(t, path)
	defer s.Close()
	if n := verified(t, audit.NewLog(s)); n != want {
		t.Errorf("%d appends were acknowledged, and the log has %d entries", want, n)
	}
}

// TestFilesAreKeptOnce: B11, contents share their files.
func TestFilesAreKeptOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, path)
	defer s.Close()
	log := audit.NewLog(s)
	for i, skill := range []string{"one", "two", "one", "one"} {
		c, err := bundle.New([]bundle.File{
			{Path: "SKILL.md", Data: []byte(skill)}, {Path: "a.py", Data: []byte("same")}, {Path: "b.py", Data: []byte("same")}, {Path: "empty", Data: nil},
		}, nil, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		g := grant.Grant{
			ID: fmt.Sprint(i), Ref: grant.Ref{Tenant: []string{"acme", "umbrella"}[i/2], Skill: skill, Script: fmt.Sprint(i)}, Pin: c.Digest(),
			Granted: time.Now(), MinTier: grant.Process,
		}
		_, err = log.Commit(t.Context(), audit.Entry{Tenant: g.Ref.Tenant, Kind: audit.Granted}, func(ctx context.Context, p audit.Pending) error {
			return s.AddGrant(ctx, g, c, "", p)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var contents, files, blobs int
	err := raw(t, path).QueryRow(`SELECT (SELECT COUNT(*) FROM content), (SELECT COUNT(*) FROM content_file), (SELECT COUNT(*) FROM blob)`).
		Scan(&contents, &files, &blobs)
	if err != nil || contents != 2 || files != 8 || blobs != 4 {
		t.Errorf("%d contents, %d files, %d blobs, error %v; want 2, 8, 4", contents, files, blobs, err)
	}
}

// TestOlderWhileOpen: tables are not brought to this version under another
// process that has them open.
func TestOlderWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, path)
	defer s.Close()
	execSQL(t, raw(t, path), `DELETE FROM schema_version WHERE version_id > 0`)
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 100 * time.Millisecond})
	if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "stop that one first") {
		t.Errorf("Open says %v, want that the other process must be stopped", err)
	}
	appendTo(t, audit.NewLog(s), "the other process goes on")
}
