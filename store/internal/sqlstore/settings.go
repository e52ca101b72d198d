package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// scanSetting reads a revision and a setting, of a tenant or of gate.HostTenant, into v, which stays as it is where
// there is no row. What does not decode whole is an error: half a policy must
// not hold.
func scanSetting(row *sql.Row, of string, v any) (revision int64, err error) {
	var text []byte
	err = row.Scan(&revision, &text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return revision, readSetting(revision, text, of, v)
}

func readSetting(revision int64, text []byte, of string, v any) error {
	text, err := withoutSum(text, of, revision)
	if err == nil {
		err = decode(text, v)
	}
	if err != nil {
		return damaged("the setting of revision %d: %w", revision, err)
	}
	return nil
}

func decode(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("something stands behind its JSON")
	}
	return nil
}

// setting makes the change that keeps v by statement, whose arguments are key,
// the revision that the caller saw, and the JSON. It is the setting of a tenant or
// of gate.HostTenant.
func setting(by statement, of string, v any, after int64, key ...any) (func(context.Context, *writer) error, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	args := append(key, after, withSum(text, of, after+1))
	return func(ctx context.Context, w *writer) error {
		n, err := affected(w.do[by].ExecContext(ctx, args...))
		if err == nil && n == 0 {
			err = refused{fmt.Errorf("%w: it was changed after revision %d", grant.ErrConflict, after)}
		}
		return err
	}, nil
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// HostAt implements [store.Store].
func (s *Store) HostAt(ctx context.Context) (h gate.Host, revision int64, err error) {
	err = s.reads(ctx, "the host's settings", func() (err error) {
		revision, err = scanSetting(s.read[host].QueryRowContext(ctx), gate.HostTenant, &h)
		return err
	})
	if err != nil {
		return gate.Host{}, 0, err
	}
	return h, revision, nil
}

// Host implements [gate.Hosts].
func (s *Store) Host(ctx context.Context) (gate.Host, error) {
	h, _, err := s.HostAt(ctx)
	return h, err
}

// SetHost implements [store.Store].
func (s *Store) SetHost(ctx context.Context, h gate.Host, after int64, entry audit.Pending) error {
	if err := keep.History(gate.HostTenant, entry); err != nil {
		return err
	}
	change, err := setting(setHost, gate.HostTenant, h, after)
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, change)
}

// PolicyAt implements [store.Store].
func (s *Store) PolicyAt(ctx context.Context, tenant string) (p gate.Policy, revision int64, err error) {
	err = s.reads(ctx, "the tenant's policy", func() (err error) {
		revision, err = scanSetting(s.read[policy].QueryRowContext(ctx, tenant), tenant, &p)
		return err
	})
	if err != nil {
		return gate.Policy{}, 0, err
	}
	return p, revision, nil
}

// Policy implements [gate.Policies].
func (s *Store) Policy(ctx context.Context, tenant string) (p gate.Policy, err error) {
	err = s.reads(ctx, "the tenant's policy", func() error {
		p = gate.Policy{}
		var revision, made sql.Null[int64]
		var text, setting []byte
		if err := s.read[policyInForce].QueryRowContext(ctx, tenant).Scan(&revision, &text, &made, &setting); err != nil {
			return err
		}
		if revision.Valid {
			if err := readSetting(revision.V, text, tenant, &p); err != nil {
				return err
			}
		}
		if made.Valid {
			t, err := readTenant(tenant, made.V, setting)
			p.Suspended = t.Off
			return err
		}
		return nil
	})
	if err != nil {
		return gate.Policy{}, err
	}
	return p, nil
}

// SetPolicy implements [store.Store].
func (s *Store) SetPolicy(ctx context.Context, tenant string, p gate.Policy, after int64, entry audit.Pending) error {
	if err := keep.History(tenant, entry); err != nil {
		return err
	}
	change, err := setting(setPolicy, tenant, keep.CopyPolicy(p), after, tenant)
	if err != nil {
		return err
	}
	if keep.NoPolicy(p) {
		return s.commit(ctx, entry, change)
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		if err := w.given(ctx, tenant); err != nil {
			return err
		}
		return change(ctx, w)
	})
}
