// Package sqlite keeps everything in one SQLite file: the store of one host.
// Several processes may have the file open at once.
//
// A change is durable when its method returns: the file is in WAL mode with
// synchronous=FULL, and those who wait share a commit. After a failure to write
// the store takes no more changes until it is opened again; see
// [store.ErrPoisoned].
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// Defaults of [Options].
const DefaultBusyTimeout = 10 * time.Second

// Options are what may be set of a store. The zero Options are the defaults.
type Options struct {
	// Readers is how many reads run at once; others wait. Zero means one for each
	// processor, and at least 4.
	Readers int

	// BusyTimeout is how long a change waits while other processes write, to the
	// millisecond; then it fails and may be tried again. Zero means 10 s.
	BusyTimeout time.Duration
}

// A Store is a [store.Store] in a file. Make one with [Open] or [OpenToRead]; it is
// safe for concurrent use.
type Store struct {
	*sqlstore.Store
	leave  func() error // after the database was closed; nil: nothing
	copied bool
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes it where there is none:
// readable by its owner alone, in a folder that must be there. It changes no
// file that it does not take for its own, and deletes none.
//
// It reads the file's head and its table definitions, not all of it: damage
// further in shows as store.ErrCorrupt when it is read.
//
// # Errors
//
// store.ErrCorrupt for a file that is damaged, that is no SQLite database, or
// that of another program; store.ErrNewer for that of a newer version of this
// one; store.ErrUnusable for what cannot be opened otherwise. The text names
// the remedy.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	return openAs(ctx, path, o, file.open)
}

func openAs(ctx context.Context, path string, o Options, open func(file, context.Context) (*Store, error)) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if o.Readers < 0 || o.BusyTimeout < 0 {
		return nil, fmt.Errorf("store: %d readers and a time-out of %s; zero means the default", o.Readers, o.BusyTimeout)
	}
	o.Readers = cmp.Or(o.Readers, max(4, runtime.GOMAXPROCS(0)))
	o.BusyTimeout = cmp.Or(o.BusyTimeout, DefaultBusyTimeout)
	s, err := open(file{path: path, o: o}, ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("store: opening %s: %w", path, err)
	}
	return s, nil
}

// A file is where a store is, as an absolute path.
type file struct {
	path  string
	o     Options
	copy  string // of it, which is opened instead; "": none
	reads bool   // it is opened to read alone
}

// What a connection of the open store has beside what all have. The writer takes
// the write lock as it begins: what it reads in a transaction stays true in it.
var (
	asWriter = []string{"_txlock", "immediate"}
	asReader = []string{"_query_only", "1"}
)

// connect returns connections to f, at most n, with the parameters more.
func (f file) connect(n int, more ...string) (*sql.DB, error) {
	q := url.Values{
		"_busy_timeout": {strconv.FormatInt(max(1, f.o.BusyTimeout.Milliseconds()), 10)},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
		"_dqs":          {"0"}, // a misspelt column is an error, not a text
		"_defensive":    {"1"}, // no statement writes around the tables
		"_pragma":       {"trusted_schema(0)", "cell_size_check(1)"},
	}
	for i := 0; i < len(more); i += 2 {
		q.Add(more[i], more[i+1])
	}
	p := filepath.ToSlash(cmp.Or(f.copy, f.path))
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive's letter
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

func (f file) dialect() sqlstore.Dialect {
	return sqlstore.Dialect{Name: "sqlite", Goose: goose.DialectSQLite3, Fault: fault, Explain: f.explain, Flaws: []string{
		`PRAGMA integrity_check(100)`,
		`SELECT 'row ' || COALESCE(rowid, 'without a number') || ' of ' || "table" || ' names what is not in ' || parent FROM pragma_foreign_key_check LIMIT 100`,
	}}
}

func (f file) open(ctx context.Context) (*Store, error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	opened, err := os.Stat(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	writer, err := f.connect(1, asWriter...)
	if err != nil {
		return nil, err
	}
	readers, err := f.connect(f.o.Readers, asReader...)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	s, err := sqlstore.Open(ctx, sqlstore.Config{Dialect: f.dialect(), Writer: writer, Readers: readers, Check: func() error {
		return f.same(opened)
	}})
	if err != nil {
		return nil, err
	}
	return &Store{Store: s}, nil
}

// same says whether the file at its path is still the one that was opened. What
// is written to one that was moved aside or replaced would be lost, and yet
// acknowledged.
func (f file) same(opened fs.FileInfo) error {
	now, err := os.Stat(f.path)
	if err == nil && os.SameFile(opened, now) {
		return nil
	}
	return fmt.Errorf("%w: %s was moved or replaced while it was open; start again, with the file that shall hold", store.ErrUnusable, f.path)
}
