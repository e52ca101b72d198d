package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/image/registry"
	"github.com/tracon-go/tracon/internal/daemon"
)

// pullFlags are the words by which a registry is asked.
type pullFlags struct {
	reach           []string
	plain           bool
	authority, file string
}

func (a *app) runtimePullCmd() *cobra.Command {
	var f importFlags
	var p pullFlags
	cmd := &cobra.Command{
		Use:   "pull NAME REFERENCE",
		Short: "Keep a container image of a registry under a name",
		Long: `Has a container image from its registry, compares each part with its digest and size,
unpacks it as "tracon runtime import" does, and gives it the name. Nothing of it is run.

REFERENCE is REGISTRY/REPOSITORY with :TAG or @DIGEST, written out: docker.io/library/python:3.12.
What a tag meant is kept in the log, and "tracon runtime show" shows it.

The registry is asked over TLS. One on this machine (localhost, 127.0.0.1) is asked by
plain HTTP, unless --plain-http=false says otherwise; another one only with --plain-http,
and then without credentials. One in a private network needs --reach private. No proxy of
the environment is used.

Credentials are those of the Docker configuration, as docker login keeps them: in
DOCKER_CONFIG or ~/.docker, or in the file that --credentials names. The helpers that it
names are started. It is always this machine that asks the registry: a server is sent
what came, and never a credential.`,
		Example: `  tracon runtime pull python-3.12 docker.io/library/python:3.12-slim
  tracon runtime pull python-3.12 registry.corp.example:5000/python@sha256:0f1e… --reach private
  tracon runtime pull tools ghcr.io/acme/tools:2 --replace --platform linux/arm64`,
		Args: exactly("NAME", "REFERENCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			from, err := a.registryOptions(cmd, p, args[1])
			if err != nil {
				return err
			}
			return a.naming(cmd, f, args[0], limited(o), func(ctx context.Context, b backend, n admin.Naming) (daemon.Imported, error) {
				bar := a.progress("pulling " + harmless(n.Name, false) + ", bytes")
				defer bar.done()
				o.Progress = bar.show
				out, err := b.PullRuntime(ctx, n, args[1], from, o)
				return out, hintRegistry(err)
			})
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringSliceVar(&p.reach, "reach", nil, "where the registry may be besides the public internet: private, loopback")
	fs.BoolVar(&p.plain, "plain-http", false, "ask the registry without TLS (default: one on this machine alone)")
	fs.StringVar(&p.authority, "registry-ca", "", "file of certificates that the registry's may be of, in place of the system's")
	fs.StringVar(&p.file, "credentials", "", "file of credentials (default config.json in DOCKER_CONFIG or ~/.docker)")
	_ = cmd.RegisterFlagCompletionFunc("reach", cobra.FixedCompletions([]string{"private", "loopback"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// hintRegistry adds to an error what to do about the registry.
func hintRegistry(err error) error {
	if errors.Is(err, registry.ErrNotFound) {
		return hint(err, "look at the reference; where it is not for everybody, `docker login` or --credentials says who you are")
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return hint(err, "it has no TLS: --plain-http asks it without")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return hint(err, "--registry-ca names a file with the authority that its certificate is of")
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return hint(err, "see whether the reference names the right registry, and whether this machine reaches it: no proxy of the environment is used")
	}
	return err
}

func (a *app) registryOptions(cmd *cobra.Command, p pullFlags, reference string) (o registry.Options, err error) {
	o = registry.Options{Reach: p.reach, PlainHTTP: p.plain, DockerConfig: p.file}
	if !cmd.Flags().Changed("plain-http") {
		o.PlainHTTP = registry.IsHere(reference)
	}
	switch dir := a.getenv("DOCKER_CONFIG"); {
	case p.file != "":
		if _, err := os.Stat(p.file); err != nil {
			return o, fmt.Errorf("--credentials: %w", err)
		}
	case dir != "":
		o.DockerConfig = filepath.Join(dir, "config.json")
	case a.getenv("HOME") != "":
		o.DockerConfig = filepath.Join(a.getenv("HOME"), ".docker", "config.json")
	}
	if p.authority != "" {
		text, err := os.ReadFile(p.authority)
		if err != nil {
			return o, fmt.Errorf("--registry-ca: %w", err)
		}
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM(text) {
			return o, fmt.Errorf("--registry-ca: there is no certificate in %s", p.authority)
		}
	}
	return o, nil
}
