package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/store/postgres"
	"github.com/tracon-go/tracon/store/sqlite"
)

// A Use is what a house is opened for. The zero Use does the least.
type Use int

const (
	Read   Use = iota // what is kept, as it lies there, be it a copy that may not be written: nothing is made or brought to this version
	Verify            // the same, where a database that is gone, of which checkpoints in the data folder tell, is a log without entries
	List              // as Read, where nothing kept is an empty list, and what is of an older version is brought to this one
	Change            // what is kept; nothing is made
	Make              // what is needed, from the data folder on
)

// ErrNone is wrapped by the error for a house where nothing was kept yet.
var ErrNone = errors.New("there is no database")

// openStore opens the store that the configuration names, and says where it is.
func openStore(ctx context.Context, use Use, c *config.Config) (store.Store, string, error) {
	if use == Make {
		if err := ownfile.MakeFolder(c.Data); err != nil {
			return nil, "", fmt.Errorf("the data folder: %w; make it, or name another with --data", err)
		}
	}
	if c.Store == config.Postgres {
		where, err := postgres.Name(c.DatabaseURL)
		if err != nil {
			return nil, "", err
		}
		st, err := postgres.Open(ctx, c.DatabaseURL, postgres.Options{})
		if err != nil {
			return nil, "", err
		}
		return st, where, nil
	}
	path := filepath.Join(c.Data, DatabaseFile)
	if use != Make {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist) && (use == List || use == Verify && there(notary.File(c.Data))):
			return memstore.New(), path, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, "", fmt.Errorf("%w in %s; name the folder with --data", ErrNone, c.Data)
		case err != nil:
			return nil, "", fmt.Errorf("the data folder: %w; name another with --data", err)
		}
	}
	open := sqlite.Open
	if use == Read || use == Verify || use == List {
		open = sqlite.OpenToRead
	}
	st, err := open(ctx, path, sqlite.Options{})
	if use == List && errors.Is(err, store.ErrOlder) {
		st, err = sqlite.Open(ctx, path, sqlite.Options{})
	}
	if err != nil {
		return nil, "", err
	}
	return st, path, nil
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
