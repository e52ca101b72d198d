package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/audit"
)

// What an engine with arrays does for all entries of a transaction at once. Where
// each statement travels to a server and back, that is most of the time of a batch.
const (
	tenantHeadsText = `SELECT tenant, seq, hash FROM tenant_head WHERE tenant = ANY ($1)`
	addLeavesText   = `INSERT INTO leaf (idx, tenant, seq, hash, bytes)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[])`
	setTenantHeadsText = `INSERT INTO tenant_head (tenant, seq, hash) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])
		ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`
)

// arrays are these statements, prepared.
type arrays struct{ tenantHeads, addLeaves, setTenantHeads *sql.Stmt }

func prepareArrays(ctx context.Context, on preparer) (a *arrays, err error) {
	a = &arrays{}
	for text, to := range map[string]**sql.Stmt{tenantHeadsText: &a.tenantHeads, addLeavesText: &a.addLeaves, setTenantHeadsText: &a.setTenantHeads} {
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
	for _, s := range []*sql.Stmt{a.tenantHeads, a.addLeaves, a.setTenantHeads} {
		if s != nil {
			_ = s.Close()
		}
	}
}

// read puts into e where the histories end that the entries of batch belong to.
func (a *arrays) read(ctx context.Context, batch []*job, e *end) error {
	for _, j := range batch {
		if name := j.entry.Tenant(); !strings.ContainsRune(name, 0) { // which has no history
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

// write keeps the leaves of a transaction, and where the histories end behind them.
func (a *arrays) write(ctx context.Context, leaves []audit.Leaf, tenants map[string]*tenantEnd) error {
	var idx, seq, ends []int64
	var tenant, moved []string
	var hash, bytes, prevs [][]byte
	for _, l := range leaves {
		idx, tenant, seq = append(idx, int64(l.Index)), append(tenant, l.Tenant), append(seq, int64(l.Seq))
		hash, bytes = append(hash, slices.Clone(l.Hash[:])), append(bytes, l.Bytes)
	}
	if _, err := a.addLeaves.ExecContext(ctx, idx, tenant, seq, hash, bytes); err != nil {
		return err
	}
	for _, name := range sorted(tenants) {
		if t := tenants[name]; t.moved {
			moved, ends, prevs = append(moved, name), append(ends, int64(t.Seq)), append(prevs, slices.Clone(t.Prev[:]))
		}
	}
	_, err := a.setTenantHeads.ExecContext(ctx, moved, ends, prevs)
	return err
}
