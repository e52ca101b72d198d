package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// EraseCalls implements [store.Eraser].
func (s *Store) EraseCalls(ctx context.Context, tenant string, remove, strip []string, entry audit.Pending) error {
	if err := keep.History(tenant, entry); err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		for _, id := range remove {
			if err := w.single(ctx, id, removeCall, tenant, id); err != nil {
				return err
			}
		}
		for _, id := range strip {
			r, err := scanCall(w.do[call].QueryRowContext(ctx, tenant, id), tenant)
			if errors.Is(err, sql.ErrNoRows) {
				return gone(id)
			}
			if err != nil {
				return err
			}
			text, err := json.Marshal(restOf(r.WithoutDetails()))
			if err != nil {
				return refused{fmt.Errorf("store: the record of call %s: %w", id, err)}
			}
			if err := w.single(ctx, id, setCall, tenant, id, withSum(text, tenant, id, r.Skill, r.Digest[:])); err != nil {
				return err
			}
		}
		return nil
	})
}

// single does a statement that must change one row.
func (w *writer) single(ctx context.Context, what any, do statement, args ...any) error {
	n, err := affected(w.do[do].ExecContext(ctx, args...))
	if err == nil && n != 1 {
		err = gone(what)
	}
	return err
}

func gone(what any) error {
	return refused{fmt.Errorf("%w: %v is not there any more", grant.ErrConflict, what)}
}

// EraseContents implements [store.Eraser].
func (s *Store) EraseContents(ctx context.Context, contents []store.Expired, entry audit.Pending) error {
	if err := keep.History(gate.HostTenant, entry); err != nil {
		return err
	}
	at := time.Now().UnixMicro()
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		for _, c := range contents {
			if err := w.eraseContent(ctx, c, at); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) eraseContent(ctx context.Context, c store.Expired, at int64) error {
	var named int64
	if err := w.do[namings].QueryRowContext(ctx, c.Digest[:]).Scan(&named); err != nil {
		return err
	}
	if named != c.Named {
		return refused{fmt.Errorf("%w: the content %s was named by %d grants and versions, and is by %d", grant.ErrConflict, c.Digest, c.Named, named)}
	}
	if err := w.single(ctx, c.Digest, eraseContent, c.Digest[:], at, []byte{}); err != nil {
		return err
	}
	blobs, err := w.blobs(ctx, c.Digest)
	if err != nil {
		return err
	}
	if _, err := w.do[removeFiles].ExecContext(ctx, c.Digest[:]); err != nil {
		return err
	}
	for _, b := range blobs {
		if _, err := w.do[removeBlob].ExecContext(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the digests of the content's files.
func (w *writer) blobs(ctx context.Context, content bundle.Digest) (digests [][]byte, err error) {
	rows, err := w.do[entries].QueryContext(ctx, content[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		var digest []byte
		var size int64
		if err := rows.Scan(&path, &digest, &size); err != nil {
			return nil, err
		}
		digests = append(digests, digest)
	}
	return digests, rows.Err()
}
