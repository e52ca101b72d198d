package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/tracon-go/tracon/image"
)

func altered(want, got string) error {
	return fmt.Errorf("%w: it was altered on its way: what came as %.80s is %s", image.ErrContent, want, got)
}

// told makes of an error what an operator can do something with.
func (s *source) told(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	missing := errors.Is(err, errdef.ErrNotFound) || errors.Is(err, auth.ErrBasicCredentialNotFound)
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		missing = missing || answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusNotFound
	}
	if missing {
		return fmt.Errorf("%w: %s: %w", ErrNotFound, s.ref, err)
	}
	if errors.Is(err, image.ErrContent) {
		return err
	}
	return fmt.Errorf("registry: %s: %w", s.ref.Registry, err)
}
