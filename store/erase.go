package store

import (
	"context"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
)

// An Eraser takes away what is kept beside the log. The log itself stays whole.
type Eraser interface {
	// EraseCalls takes away the tenant's records remove, and of its records strip
	// what [toolcall.Record.WithoutDetails] leaves out, and seals entry, all or
	// nothing. Where one of them is not there it fails with grant.ErrConflict.
	EraseCalls(ctx context.Context, tenant string, remove, strip []string, entry audit.Pending) error

	// EraseContents takes away the declaration and the files of contents, and seals
	// entry, which belongs to the host's history, all or nothing. A file that another
	// content has too stays. From then on the contents are not found, until one is
	// granted or imported again. Where one is not there, or grants and versions other
	// than those that the caller saw name it, it fails with grant.ErrConflict.
	EraseContents(ctx context.Context, contents []Expired, entry audit.Pending) error
}

// An Expired is a content that is to be erased.
type Expired struct {
	Digest bundle.Digest
	Named  int64 // how many grants and versions of all tenants name it
}
