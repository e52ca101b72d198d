package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/conformance"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) conformanceRunnerCmd() *cobra.Command {
	var runtimes []string
	var cert, certKey string
	cmd := &cobra.Command{
		Use: "runner URL",
		Example: `  tracon conformance runner https://runner.example.com --key-file runner.key --tenant acme
  tracon conformance runner https://runner.example.com --cert client.crt --cert-key client.key --ca-file ca.pem --tenant acme
  tracon conformance runner http://127.0.0.1:8788 --runtime python-3.12 --json`,
		Short: "See whether a runner service speaks the wire, whoever made it",
		Long: `Asks a runner service (docs/runner-protocol.md) for short, harmless scripts, and says which
rules of the wire it keeps: input, streams, exit codes, timeout, limits, and what it must
refuse. Where the runner says that it knows tracon/1, the rules of that are looked at too:
closures, uploads, words, files, tiers. Output that is shown while a script runs is looked
at where it says that it knows tracon-live/1, and else told as not offered.

The runtimes are those that the runner tells of, or those of --runtime. The key is that of
--key-file, or of TRACON_KEY, for the tenant of --tenant; or there is a client certificate in
its place. It goes to the URL alone: there is no redirect and no proxy. The scripts stand in the runner's own log.

It exits with 0 when all rules hold, and 3 when one does not.`,
		Args: exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := conformance.Runner{Address: args[0], Tenant: a.tenant, Runtimes: map[string]string{}}
			for _, name := range runtimes {
				ext, ok := config.RuntimeExtension(name)
				if !ok {
					return usage(cmd, fmt.Errorf("--runtime %q: the name begins with its language, such as python-3.12, node-22 or sh", name))
				}
				r.Runtimes[name] = ext
			}
			if (cert == "") != (certKey == "") {
				return usage(cmd, errors.New("of --cert and --cert-key one is given: give both, or none"))
			}
			return a.conformRunner(cmd.Context(), r, cert, certKey)
		},
	}
	cmd.Flags().StringSliceVar(&runtimes, "runtime", nil, "look at this runtime (repeatable; default: all that the runner tells of)")
	_ = cmd.RegisterFlagCompletionFunc("runtime", cobra.NoFileCompletions)
	cmd.Flags().StringVar(&cert, "cert", "", "file with the client certificate to ask with")
	cmd.Flags().StringVar(&certKey, "cert-key", "", "file with its private key, which nobody else may read")
	return cmd
}

func (a *app) conformRunner(ctx context.Context, r conformance.Runner, cert, certKey string) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	if r.Key, err = a.key(c); err != nil {
		return err
	}
	t, err := transport(c.CAFile)
	if err != nil {
		return err
	}
	r.TLS = t.(*http.Transport).TLSClientConfig
	if cert != "" {
		pair, err := daemon.ClientCertificate(cert, certKey)
		if err != nil {
			return fmt.Errorf("--cert and --cert-key: %w", err)
		}
		r.TLS.Certificates = append(r.TLS.Certificates, pair)
	}
	p := a.progress("rules")
	var n uint64
	r.Over = func(conformance.Check) { n++; p.show(n) }
	checks, err := r.Run(ctx)
	p.done()
	if err != nil {
		return hint(fmt.Errorf("the runner %s: %w", r.Address, err), "%s", remedyOfRunner(err))
	}
	name, tier := "a runner of the plain wire", "not told"
	if r.Info.Knows() {
		name, tier = strings.TrimSpace("runner "+r.Info.Name), r.Info.Tier+" as it claims"
	}
	return a.checked(harmless(name, true), harmless(tier, true), checks)
}

// remedyOfRunner is what to do where a runner cannot be looked at.
func remedyOfRunner(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "name with --ca-file the certificates that the runner's is signed by"
	}
	if errors.Is(err, conformance.ErrStranger) {
		return "give a key of `tracon runner key create` there with --key-file or TRACON_KEY, or a certificate that its runner_clients name with --cert and --cert-key"
	}
	return "name the address below which it has runs, and its key with --key-file"
}
