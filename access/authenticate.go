package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/grant"
)

var (
	// ErrCredential is the error for every credential that lets nobody in, whatever
	// the reason: it says nothing more, and neither does its time.
	ErrCredential = errors.New("access: the credential is not valid")

	// ErrUnavailable is wrapped by the error of a credential that could not be looked
	// up: nobody is let in, and a later try may be. What it wraps is for the operator.
	ErrUnavailable = errors.New("access: who asks could not be looked up")
)

// Authenticate returns whom the text of a key lets in at the time now: the key is there,
// has this secret, is neither revoked nor expired, and its tenant was made and is not
// off. It writes that the key was used, now and then; that this fails keeps nobody out.
//
// # Errors
//
// ErrCredential alone; one that wraps ErrUnavailable where the book could not be read.
func Authenticate(ctx context.Context, book Finder, text string, now time.Time) (Principal, error) {
	secret, err := ParseSecret(text)
	if err != nil {
		return Principal{}, ErrCredential
	}
	// An id that nobody has goes the same way as a wrong secret: its zero Key has a
	// Hash that equals none, and a tenant that is asked for too.
	key, err := book.KeyByID(ctx, secret.ID())
	if err != nil && !errors.Is(err, grant.ErrNotFound) {
		return Principal{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	tenant, _, err := book.TenantAt(ctx, key.Tenant)
	if err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	same := key.Hash.Equal(secret.Hash())
	open := key.InForce(now) && (key.Tenant == "" || on(tenant, key.Tenant))
	if !same || !open || key.ID != secret.ID() {
		return Principal{}, ErrCredential
	}
	if now.Sub(key.Used) >= UsedEvery {
		_ = book.UseKey(ctx, key.ID, now) // a store that takes no changes can be read still
	}
	return key.Principal(), nil
}

func on(t Tenant, name string) bool {
	return name != "" && t.Name == name && !t.Off && t.Deleted.IsZero()
}

// Admit is for a door with credentials of its own, which has made p of one: it says
// whether somebody made p's tenant and it is not off, and whether p can be anybody.
//
// # Errors
//
// ErrCredential alone; one that wraps ErrUnavailable where the book could not be read.
func Admit(ctx context.Context, book Finder, p Principal) error {
	if p.validate() != nil || checkRoles(p.Roles, p.Scopes) != nil {
		return ErrCredential
	}
	if p.Tenant == "" {
		return nil
	}
	t, _, err := book.TenantAt(ctx, p.Tenant)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if !on(t, p.Tenant) {
		return ErrCredential
	}
	return nil
}

// An Authorizer is an embedder's own word on what a principal may do. It is asked
// after the roles have said yes, so it can only narrow. It must be safe for concurrent use.
type Authorizer interface {
	// Authorize returns nil where p may do what. The text of its error may be shown
	// to who asked.
	Authorize(ctx context.Context, p Principal, what Permission) error
}

// Check returns nil if p's roles and scopes give what, and a agrees; a nil a means
// that they decide alone.
//
// # Errors
//
// One that wraps ErrDenied.
func Check(ctx context.Context, a Authorizer, p Principal, what Permission) error {
	if err := p.Check(what); err != nil || a == nil {
		return err
	}
	err := a.Authorize(ctx, p, what)
	if err != nil && !errors.Is(err, ErrDenied) {
		err = fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}
