package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// unlimited are the limits of what was within its limits when it was kept.
var unlimited = bundle.Limits{FileBytes: math.MaxInt64, TotalBytes: math.MaxInt64, Files: math.MaxInt, Depth: math.MaxInt, PathBytes: math.MaxInt}

// addContent keeps b, unless it is kept already.
func (w *writer) addContent(ctx context.Context, b bundle.Bundle) error {
	digest := b.Digest()
	n, err := affected(w.do[addContent].ExecContext(ctx, digest[:], blob(b.Declaration())))
	if err != nil || n == 0 {
		return err
	}
	for _, path := range b.Paths() {
		data, sum, _ := b.Text(path)
		if _, err := w.do[addBlob].ExecContext(ctx, sum[:], blob([]byte(data))); err != nil {
			return err
		}
		if _, err := w.do[addFile].ExecContext(ctx, digest[:], path, sum[:], len(data)); err != nil {
			return err
		}
	}
	return nil
}

// blob returns b as a value that is never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Content implements [grant.Book].
func (s *Store) Content(ctx context.Context, tenant string, digest bundle.Digest) (b bundle.Bundle, err error) {
	err = s.reads(ctx, "the content", func() (err error) {
		var named int
		if err := s.read[names].QueryRowContext(ctx, tenant, digest[:]).Scan(&named); err != nil {
			return err
		}
		if named == 0 {
			return refused{fmt.Errorf("%w: no grant and no version names %s", grant.ErrNotFound, digest)}
		}
		b, err = s.content(ctx, digest)
		return err
	})
	if err != nil {
		return bundle.Bundle{}, err
	}
	return b, nil
}

// content reads what is kept under digest and computes the digest again: bytes
// that were changed are never served.
func (s *Store) content(ctx context.Context, digest bundle.Digest) (bundle.Bundle, error) {
	var decl []byte
	err := s.read[declaration].QueryRowContext(ctx, digest[:]).Scan(&decl)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return bundle.Bundle{}, damaged("the content %s is gone, and a grant or a version names it", digest)
	case err != nil:
		return bundle.Bundle{}, err
	}
	rows, err := s.read[files].QueryContext(ctx, digest[:])
	if err != nil {
		return bundle.Bundle{}, err
	}
	defer rows.Close()
	var list []bundle.File
	for rows.Next() {
		var f bundle.File
		if err := rows.Scan(&f.Path, &f.Data); err != nil {
			return bundle.Bundle{}, err
		}
		list = append(list, f)
	}
	if err := rows.Err(); err != nil {
		return bundle.Bundle{}, err
	}
	b, err := bundle.New(list, decl, unlimited)
	if err == nil && b.Digest() != digest {
		err = fmt.Errorf("what is kept has the digest %s", b.Digest())
	}
	if err != nil {
		// The inner error is not wrapped: bundle.ErrContent would make a refusal of
		// what must stop everything (case 47).
		return bundle.Bundle{}, damaged("the content %s was changed where it is kept: %v", digest, err)
	}
	return b, nil
}
