package postgres

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tracon-go/tracon/store"
)

// parse reads an address. Its errors hold nothing of it: where a character was
// forgotten to be escaped, a part of the password stands where another thing is
// looked for.
func parse(address string) (*pgx.ConnConfig, error) {
	bad := fmt.Errorf("%w: the database's address cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, "+
		"with %%40 for @, %%2F for /, %%3A for :, %%23 for #, %%3F for ? and %%25 for %% in the password", store.ErrUnusable)
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Fragment != "" || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") {
			return nil, bad
		}
	}
	if strings.TrimSpace(address) == "" {
		return nil, fmt.Errorf("%w: the database has no address", store.ErrUnusable)
	}
	c, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, bad
	}
	protected, open := c.TLSConfig != nil, c.TLSConfig == nil && !local(c.Host)
	for _, f := range c.Fallbacks {
		protected = protected || f.TLSConfig != nil
		open = open || f.TLSConfig == nil && !local(f.Host)
	}
	if protected && open {
		return nil, fmt.Errorf("%w: whoever answers for the database would say whether the connection is protected; "+
			"add sslmode=verify-full to its address, or sslmode=disable where the network is trusted", store.ErrUnusable)
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	return c, nil
}

// local reports whether host is reached without a network.
func local(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Name returns how the database at address is told of: without the password, and
// without what else the address says.
func Name(address string) (string, error) {
	c, err := parse(address)
	if err != nil {
		return "", err
	}
	return name(c), nil
}

func name(c *pgx.ConnConfig) string {
	host := c.Host
	if !strings.HasPrefix(host, "/") {
		host = fmt.Sprintf("%s:%d", host, c.Port)
	}
	return fmt.Sprintf("the database %s of %s at %s", c.Database, c.User, host)
}
