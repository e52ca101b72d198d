package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/tracon-go/tracon/store"
)

//go:embed migrations
var migrations embed.FS

// VersionTable is where a database keeps the version of its tables.
const VersionTable = "schema_version"

func (d Dialect) provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+d.Name)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(d.Goose, db, files, goose.WithTableName(VersionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// Version returns the version of the tables that db has, which must have a
// [VersionTable], and that of this program. It writes nothing.
//
// # Errors
//
// store.ErrNewer when the tables are of a newer version of this program.
func Version(ctx context.Context, db *sql.DB, d Dialect) (has, want int64, err error) {
	p, err := d.provider(db)
	if err != nil {
		return 0, 0, err
	}
	for _, s := range p.ListSources() {
		want = max(want, s.Version)
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+VersionTable).Scan(&has)
	if err == nil && has > want {
		err = fmt.Errorf("%w: its tables are of version %d, and this program knows up to %d; use the newer program, or restore a backup from before its first start",
			store.ErrNewer, has, want)
	}
	return has, want, err
}

// Migrate brings the tables of db to the version of this program. The caller
// sees to it that nobody else does so at the same time.
//
// # Errors
//
// store.ErrNewer when the tables are of a newer version of this program.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	p, err := d.provider(db)
	if err != nil {
		return err
	}
	if _, err := p.GetDBVersion(ctx); err != nil { // makes the version table
		return err
	}
	if _, _, err := Version(ctx, db, d); err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
