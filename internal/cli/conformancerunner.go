package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/conformance"
)

func (a *app) conformanceRunnerCmd() *cobra.Command {
	var runtimes []string
	cmd := &cobra.Command{
		Use: "runner URL",
		Example: `  tracon conformance runner https://runner.example.com --key-file runner.key --tenant acme
  tracon conformance runner http://127.0.0.1:8788 --runtime python-3.12 --json`,
		Short: "See whether a runner service speaks the wire, whoever made it",
		Long: `Asks a runner service (docs/runner-protocol.md) for short, harmless scripts, and says which
rules of the wire it keeps: input, streams, exit codes, timeout, limits, and what it must
refuse. Where the runner says that it knows tracon/1, the rules of that are looked at too:
closures, uploads, words, files, tiers. Output that is shown while a script runs is looked
at where it says that it knows tracon-live/1, and else told as not offered.

The runtimes are those that the runner tells of, or those of --runtime. The key is that of
--key-file, or of TRACON_KEY, for the tenant of --tenant. It goes to the URL alone: there is
no redirect and no proxy. The scripts stand in the runner's own log.

It exits with 0 when all rules hold, and 3 when one does not.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := conformance.Runner{Address: args[0], Tenant: a.tenant, Runtimes: map[string]string{}}
			for _, name := range runtimes {
				ext, ok := config.RuntimeExtension(name)
				if !ok {
					return usage(cmd, fmt.Errorf("--runtime %q: the name begins with its language, such as python-3.12, node-22 or sh", name))
				}
				r.Runtimes[name] = ext
			}
			return a.conformRunner(cmd.Context(), r)
		},
	}
	cmd.Flags().StringSliceVar(&runtimes, "runtime", nil, "look at this runtime (repeatable; default: all that the runner tells of)")
	_ = cmd.RegisterFlagCompletionFunc("runtime", cobra.NoFileCompletions)
	return cmd
}

func (a *app) conformRunner(ctx context.Context, r conformance.Runner) error {
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
	p := a.progress("rules")
	var n uint64
	r.Over = func(conformance.Check) { n++; p.show(n) }
	checks, err := r.Run(ctx)
	p.done()
	if err != nil {
		return hint(fmt.Errorf("the runner %s: %w", r.Address, err), "name the address below which it has runs, and its key with --key-file")
	}
	name, tier := "a runner of the plain wire", "not told"
	if r.Info.Knows() {
		name, tier = strings.TrimSpace("runner "+r.Info.Name), r.Info.Tier+" as it claims"
	}
	return a.checked(harmless(name, true), harmless(tier, true), checks)
}
