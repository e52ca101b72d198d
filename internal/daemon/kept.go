package daemon

import (
	"context"
	"path/filepath"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
	"github.com/tracon-go/tracon/store/sqlite"
)

// openStore opens the store that the configuration names, and says where it is.
func openStore(ctx context.Context, c *config.Config) (store.Store, string, error) {
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
	st, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, "", err
	}
	return st, path, nil
}
