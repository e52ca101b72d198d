package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// unlimited are the limits of what was within its limits when it was kept.
var unlimited = bundle.Limits{FileBytes: math.MaxInt64, TotalBytes: math.MaxInt64, Files: math.MaxInt, Depth: math.MaxInt, PathBytes: math.MaxInt, Kept: true}

// addContent keeps content, unless it is kept already: one file after the other, and
// equal ones once. That content cannot be read ends the change alone. (To ask first
// which files are kept costs more than to read them: for 2,000 files a third of all.)
func (w *writer) addContent(ctx context.Context, content bundle.Content) error {
	l := content.Listing()
	digest := l.Digest()
	n, err := affected(w.do[addContent].ExecContext(ctx, digest[:], blob(l.Declaration())))
	if err != nil || n == 0 {
		return err
	}
	for _, e := range l.Entries() {
		data, err := bundle.Read(content, e.Path)
		if err != nil {
			return refused{fmt.Errorf("the content to be kept: %w", err)}
		}
		if _, err := w.do[addBlob].ExecContext(ctx, e.Digest[:], blob(data)); err != nil {
			return err
		}
		if _, err := w.do[addFile].ExecContext(ctx, digest[:], e.Path, e.Digest[:], e.Size); err != nil {
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
		if err := s.named(ctx, tenant, digest); err != nil {
			return err
		}
		b, err = s.content(ctx, digest)
		return err
	})
	if err != nil {
		return bundle.Bundle{}, err
	}
	return b, nil
}

// Files implements [grant.Book].
func (s *Store) Files(ctx context.Context, tenant string, digest bundle.Digest) (bundle.Content, error) {
	c := kept{s: s, ctx: ctx}
	err := s.reads(ctx, "the content", func() (err error) {
		if err := s.named(ctx, tenant, digest); err != nil {
			return err
		}
		c.listing, err = s.listing(ctx, digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// named refuses a digest that nothing of the tenant's names.
func (s *Store) named(ctx context.Context, tenant string, digest bundle.Digest) error {
	var n int
	if err := s.read[names].QueryRowContext(ctx, tenant, digest[:]).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return refused{fmt.Errorf("%w: no grant and no version names %s", grant.ErrNotFound, digest)}
	}
	return nil
}

// A kept is a content of which the files stay where they are until one is asked for.
type kept struct {
	s       *Store
	ctx     context.Context // of the call that asked for the content
	listing bundle.Listing
}

// Listing implements [bundle.Content].
func (c kept) Listing() bundle.Listing { return c.listing }

// ReadFile implements [bundle.Content].
func (c kept) ReadFile(path string) (data []byte, err error) {
	e, ok := c.listing.Entry(path)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	err = c.s.reads(c.ctx, "a file", func() error {
		err := c.s.read[file].QueryRowContext(c.ctx, e.Digest[:]).Scan(&data)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return damaged("the file %s of the content %s is gone", path, c.listing.Digest())
		case err == nil && bundle.Sum(data) != e.Digest:
			return damaged("the file %s of the content %s was changed where it is kept", path, c.listing.Digest())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// listing reads what is kept of the content beside its bytes, and computes the
// digest again.
func (s *Store) listing(ctx context.Context, digest bundle.Digest) (l bundle.Listing, err error) {
	var list []bundle.Entry
	decl, err := s.each(ctx, digest, entries, func(rows *sql.Rows) error {
		var e bundle.Entry
		var sum sql.RawBytes
		if err := rows.Scan(&e.Path, &sum, &e.Size); err != nil {
			return err
		}
		if len(sum) != len(e.Digest) {
			return altered(digest, fmt.Errorf("a digest of %d bytes", len(sum)))
		}
		e.Digest = bundle.Digest(sum)
		list = append(list, e)
		return nil
	})
	if err != nil {
		return bundle.Listing{}, err
	}
	l, err = bundle.NewListing(list, decl, unlimited)
	return l, same(digest, l.Digest(), err)
}

// content reads what is kept under digest and computes the digest again: bytes
// that were changed are never served. Each file is copied once.
func (s *Store) content(ctx context.Context, digest bundle.Digest) (b bundle.Bundle, err error) {
	build := bundle.NewBuilder(unlimited)
	decl, err := s.each(ctx, digest, files, func(rows *sql.Rows) error {
		var path string
		var data sql.RawBytes
		if err := rows.Scan(&path, &data); err != nil {
			return err
		}
		if err := build.Add(path, data); err != nil {
			return altered(digest, err)
		}
		return nil
	})
	if err != nil {
		return bundle.Bundle{}, err
	}
	b, err = build.Bundle(decl)
	return b, same(digest, b.Digest(), err)
}

// each returns the declaration of the content, and calls f for each row of which.
func (s *Store) each(ctx context.Context, digest bundle.Digest, which statement, f func(*sql.Rows) error) (decl []byte, err error) {
	var erased sql.Null[int64]
	err = s.read[declaration].QueryRowContext(ctx, digest[:]).Scan(&decl, &erased)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, damaged("the content %s is gone, and a grant or a version names it", digest)
	case err != nil:
		return nil, err
	case erased.Valid:
		return nil, refused{fmt.Errorf("%w: the content %s was erased on %s, because its time was over; import or grant it again",
			grant.ErrNotFound, digest, time.UnixMicro(erased.V).UTC().Format(time.DateOnly))}
	}
	rows, err := s.read[which].QueryContext(ctx, digest[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return nil, err
		}
	}
	return decl, rows.Err()
}

// same is nil where what was read without err has the digest that it was kept under.
func same(digest, got bundle.Digest, err error) error {
	switch {
	case err != nil:
		return altered(digest, err)
	case got != digest:
		return altered(digest, fmt.Errorf("what is kept has the digest %s", got))
	}
	return nil
}

// altered does not wrap err: bundle.ErrContent would make a refusal of what must
// stop everything (case 47).
func altered(digest bundle.Digest, err error) error {
	return damaged("the content %s was changed where it is kept: %v", digest, err)
}
