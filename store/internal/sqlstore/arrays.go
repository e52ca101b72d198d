package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
)

// What an engine with arrays does for all entries of a transaction at once. Where
// each statement travels to a server and back, that is most of the time of a batch.
const (
	tenantHeadsText = `SELECT tenant, seq, hash FROM tenant_head WHERE tenant = ANY ($1)`
	setEndText      = `WITH leaves AS (INSERT INTO leaf (idx, tenant, seq, hash, bytes)
			SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[])),
		tenants AS (INSERT INTO tenant_head (tenant, seq, hash) SELECT * FROM unnest($6::text[], $7::bigint[], $8::bytea[])
			ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash)
		UPDATE log_head SET size = $9, edge = $10 WHERE one = 1`
)

// arrayTexts are statements whose texts are others where there are arrays. An array is
// looked up by the index, whatever the engine knows of the rows yet.
var arrayTexts = map[statement]string{
	bytesKept: `SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM content_file WHERE content = ANY (ARRAY(
		SELECT pin FROM grants WHERE tenant = $1 UNION SELECT digest FROM skill_version WHERE tenant = $1 AND digest IS NOT NULL))`,
}

// arrays are these statements, prepared.
type arrays struct{ tenantHeads, setEnd *sql.Stmt }

func prepareArrays(ctx context.Context, on preparer) (a *arrays, err error) {
	a = &arrays{}
	for text, to := range map[string]**sql.Stmt{tenantHeadsText: &a.tenantHeads, setEndText: &a.setEnd} {
		if *to, err = on.PrepareContext(ctx, text); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

func (a *arrays) close() {
	if a == nil {
		return
	}
	for _, s := range []*sql.Stmt{a.tenantHeads, a.setEnd} {
		if s != nil {
			_ = s.Close()
		}
	}
}

// read puts into e where the histories end that the entries of batch belong to.
func (a *arrays) read(ctx context.Context, batch []*job, e *end) error {
	for _, j := range batch {
		if name := j.entry.Tenant(); !j.beside && !strings.ContainsRune(name, 0) { // which has no history
			e.tenants[name] = &tenantEnd{}
		}
	}
	rows, err := a.tenantHeads.QueryContext(ctx, sorted(e.tenants))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var t tenantEnd
		var hash []byte
		if err := rows.Scan(&name, &t.Seq, &hash); err != nil {
			return err
		}
		if err := t.follow(name, hash); err != nil {
			return err
		}
		e.tenants[name] = &t
	}
	return rows.Err()
}

func sorted(tenants map[string]*tenantEnd) []string {
	var all []string
	for name := range tenants {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// write keeps the leaves of a transaction, and where the log and the histories end
// behind them.
func (a *arrays) write(ctx context.Context, e *end) error {
	var idx, seq, ends []int64
	var tenant, moved []string
	var hash, bytes, prevs [][]byte
	for _, l := range e.leaves {
		idx, tenant, seq = append(idx, int64(l.Index)), append(tenant, l.Tenant), append(seq, int64(l.Seq))
		hash, bytes = append(hash, slices.Clone(l.Hash[:])), append(bytes, l.Bytes)
	}
	for _, name := range sorted(e.tenants) {
		if t := e.tenants[name]; t.moved {
			moved, ends, prevs = append(moved, name), append(ends, int64(t.Seq)), append(prevs, slices.Clone(t.Prev[:]))
		}
	}
	_, err := a.setEnd.ExecContext(ctx, idx, tenant, seq, hash, bytes, moved, ends, prevs, int64(e.frontier.Size()), edge(e.frontier))
	return err
}
