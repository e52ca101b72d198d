package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// maxConfig is how many bytes a file of credentials may have.
const maxConfig = 1 << 20

// helper is the name of a program that knows credentials, behind docker-credential-: it
// must be one that is looked for, and no path.
var helper = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// fromDocker returns what knows the credentials of the user's Docker configuration, in
// the form of docker login: a registry's own helper, the helper for all, or what the file
// itself has. A file that is not there knows none.
func fromDocker(file string) (auth.CredentialFunc, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var c struct {
		Store   string            `json:"credsStore"`
		Helpers map[string]string `json:"credHelpers"`
	}
	if len(b) > maxConfig {
		return nil, fmt.Errorf("registry: %s has more than %d bytes", file, maxConfig)
	}
	if err := strictjson.UnmarshalKnown(b, &c); err != nil {
		return nil, fmt.Errorf("registry: %s: %w", file, err)
	}
	names := []string{c.Store}
	for _, name := range c.Helpers {
		names = append(names, name)
	}
	for _, name := range names {
		if name != "" && !helper.MatchString(name) {
			return nil, fmt.Errorf("registry: %s names the credential helper %q, which is the name of no program", file, name)
		}
	}
	store, err := credentials.NewStore(file, credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", file, err)
	}
	get := credentials.Credential(store)
	return func(ctx context.Context, host string) (auth.Credential, error) {
		got, err := get(ctx, host)
		if err != nil {
			return got, fmt.Errorf("registry: the credentials for %s by %s: %w", host, file, err)
		}
		return got, nil
	}, nil
}
