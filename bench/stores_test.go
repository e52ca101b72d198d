package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
	"github.com/tracon-go/tracon/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgserver.Main(m)) }

// An engine is a store, with the database below it for whoever writes plainly.
type engine struct {
	name string
	open func(testing.TB) (store.Store, *sql.DB)
}

var engines = []engine{
	{"sqlite", func(t testing.TB) (store.Store, *sql.DB) {
		path := filepath.Join(t.TempDir(), "tracon.db")
		st, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		return st, raw(t, "sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_busy_timeout=60000&_synchronous=FULL&_txlock=immediate"}).String(), err, st)
	}},
	{"postgres", func(t testing.TB) (store.Store, *sql.DB) {
		address := pgserver.New(t)
		st, err := postgres.Open(t.Context(), address, postgres.Options{})
		return st, raw(t, "pgx", address, err, st)
	}},
}

func raw(t testing.TB, driver, address string, err error, st store.Store) *sql.DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if driver == "sqlite" {
		db.SetMaxOpenConns(1) // more would wait for each other by sleeping
	}
	return db
}

func try(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// callers does op n times in all, by some callers at once.
func callers(b *testing.B, some int, op func(i int64) error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range some {
		wg.Go(func() {
			for i := done.Add(1); i <= int64(b.N); i = done.Add(1) {
				if err := op(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// admission is an entry of the size of an admission, of one of eight tenants.
func admission(i int64) audit.Entry {
	return audit.Entry{Tenant: fmt.Sprint("tenant-", i%8), Actor: "model", Kind: audit.Admission, Subject: "unit-converter scripts/convert.py",
		Run: "01900000-0000-7000-8000-000000000001", Facts: admitted}
}

var admitted = audit.Facts("argumentsBytes", "42", "argumentsCommitment", bundle.Sum(nil).String(), "digest", bundle.Sum(nil).String(),
	"grant", "01900000-0000-7000-8000-000000000002", "interpreterDigest", bundle.Sum(nil).String(), "script", bundle.Sum(nil).String())

// BenchmarkDurable appends entries of the size of an admission, each of them durable
// before its caller goes on: to the log, and beside it by a plain insert for each in
// a transaction of its own, without hashes and heads.
func BenchmarkDurable(b *testing.B) {
	row := make([]byte, 600)
	for _, e := range engines {
		for _, n := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d/plain", e.name, n), func(b *testing.B) {
				_, db := e.open(b)
				blob := map[string]string{"sqlite": "BLOB", "postgres": "BYTEA"}[e.name]
				try(b, db, `CREATE TABLE plain (tenant TEXT NOT NULL, hash `+blob+` NOT NULL, bytes `+blob+` NOT NULL)`)
				insert, err := db.Prepare(`INSERT INTO plain (tenant, hash, bytes) VALUES ($1, $2, $3)`)
				if err != nil {
					b.Fatal(err)
				}
				defer insert.Close()
				callers(b, n, func(i int64) error {
					_, err := insert.Exec(fmt.Sprint("tenant-", i%8), row[:32], row)
					return err
				})
			})
			b.Run(fmt.Sprintf("%s/callers=%d/log", e.name, n), func(b *testing.B) {
				st, _ := e.open(b)
				log := audit.NewLog(st)
				callers(b, n, func(i int64) error {
					_, err := log.Append(context.Background(), admission(i))
					return err
				})
			})
		}
	}
}

// many grants of other scripts and tenants, ten of each reference. They are put below
// the store: it would take an hour to make them one by one.
var many = map[string]string{
	"sqlite": `WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < $1)
		INSERT INTO grants (tenant, id, skill, script, all_scripts, pin, reason, source, granted_by, granted, revoked_by, min_tier)
		SELECT 'tenant-' || (i % 97), 'g-' || i, 's', 'scripts/' || (i / 970) || '.sh', 0, (SELECT digest FROM content LIMIT 1), '', '', 'op', 1, '', 'process' FROM i`,
	"postgres": `INSERT INTO grants (tenant, id, skill, script, all_scripts, pin, reason, source, granted_by, granted, revoked_by, min_tier)
		SELECT 'tenant-' || (i % 97), 'g-' || i, 's', 'scripts/' || (i / 970) || '.sh', 0, (SELECT digest FROM content LIMIT 1), '', '', 'op', 1, '', 'process'
		FROM generate_series(1, $1::bigint) AS i`,
}

// BenchmarkAdmit takes a call through all gates to its entry in the log, and looks for
// its grant alone, among a thousand grants and a million.
func BenchmarkAdmit(b *testing.B) {
	for _, e := range engines {
		for _, n := range []int{1_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/grants=%d", e.name, n), func(b *testing.B) {
				st, db := e.open(b)
				h := newHost(b, st, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
					return executor.Result{Ending: executor.Exited(0)}, nil
				}), "true.sh", ":\n")
				try(b, db, many[e.name], n)
				try(b, db, `ANALYZE`)
				standing := gate.Standing{Executor: "process", Tier: grant.Process}
				b.Run("admit", func(b *testing.B) {
					for b.Loop() {
						if _, err := h.gate.Admit(b.Context(), h.call, standing); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("grant", func(b *testing.B) {
					for b.Loop() {
						if _, err := st.Grant(b.Context(), grant.Ref{Tenant: "t", Skill: "s", Script: "true.sh"}); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}

// BenchmarkSlots takes a slot of those that hosts share over PostgreSQL, and gives it
// back.
func BenchmarkSlots(b *testing.B) {
	limits := slot.Limits{Slots: 8, SlotsPerTenant: 8, Queue: 1000, QueuePerTenant: 1000}
	one := func(p slot.Pool) error {
		place, err := p.Enter(context.Background(), "t")
		if err != nil {
			return err
		}
		defer place.Leave()
		s, err := place.Wait(context.Background(), time.Hour)
		if err == nil {
			s.Release()
		}
		return err
	}
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("postgres/callers=%d", n), func(b *testing.B) {
			st, _ := engines[1].open(b)
			h, err := st.(*postgres.Store).Join(b.Context(), postgres.HostOptions{ID: "bench", Limits: limits, Bury: func(context.Context, postgres.Dead) error { return nil }})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close(context.Background(), false)
			callers(b, n, func(int64) error { return one(h) })
		})
	}
}
