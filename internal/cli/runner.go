package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) runnerCmd() *cobra.Command {
	key := group("key", "Keys of the runner service, for the hosts that ask it",
		`  tracon runner key create control-plane --tenants acme,beta
  tracon runner key list
  tracon runner key revoke mfrggzdfmztwq2lk`,
		here(a.runnerKeyCreateCmd()), here(a.runnerKeyListCmd()), here(a.runnerKeyRevokeCmd()))
	return group("runner", "The runner service: scripts that another host's gates have decided on",
		`  tracon runner key create control-plane --tenants acme
  tracon runner serve`,
		here(a.runnerServeCmd()), key, here(a.runnerListCmd()), here(a.runnerDrainCmd()), here(a.runnerJoinKeyCmd()))
}

func (a *app) runnerServeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve runs to other hosts, until an interrupt or SIGTERM",
		Long: `Serves POST /runs to other hosts, which have decided on the run by gates of their own. It
decides once more, whatever they say: by its own switch, by the tenants of the caller's
key or client certificate, by its list of runtimes, by the digest of the bytes that came,
and by limits of its own. It writes its own log first; ` + "`tracon audit verify`" + ` checks it.

It has a data folder of its own: name one with --data where this machine has a
` + "`tracon serve`" + ` too. What it is told stands in the configuration: enabled, runtimes,
runner_listen and the other settings that begin with runner; ` + "`tracon config print`" + ` shows
them. On an interrupt or SIGTERM it takes no more runs, waits for those under way
(drain), stops the others, at once where it is told a second time, and ends when what
came of each is written. SIGHUP has it read the configuration again, all of it or nothing:
switch, runtimes, limits, certificates, keys of tickets and the fleet. What holds only after
a restart is named in its log. Keys of hosts need neither.`,
		Example: `  tracon runner serve
  TRACON_ENABLED=true TRACON_RUNTIMES=python-3.12=/usr/bin/python3 tracon runner serve --data /var/lib/tracon-runner`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load()
			if err != nil {
				return err
			}
			if c.Server != "" {
				return hint(fmt.Errorf("the setting server names %s, and a runner is a server itself", c.Server), "take --server, or TRACON_SERVER, away")
			}
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			hurry, calm := toldTwice()
			defer calm()
			err = daemon.ServeRunner(cmd.Context(), c, daemon.RunnerOptions{
				Load: a.load, Reload: reload, Hurry: hurry,
				Version: version().Version, Logger: slog.New(slog.NewJSONHandler(a.err, nil)),
				Started: func(address string) error {
					if a.json {
						return a.printJSON(struct {
							Address string `json:"address"`
						}{address})
					}
					_, err := fmt.Fprintf(a.out, "serving runs at %s\n", harmless(address, true))
					return err
				},
			})
			if u, ok := errors.AsType[*daemon.UnsafeError](err); ok {
				fmt.Fprintln(a.err, a.paint(a.err, red, "tracon:"), "the runner does not start as it is told:")
				for _, p := range u.Problems {
					a.say("  - %s", p)
				}
				return &exitWith{exitError, nil}
			}
			return err
		},
	}
}

// atRunner opens the data folder for use, whatever `tracon serve` or the runner does.
func (a *app) atRunner(cmd *cobra.Command, use daemon.Use, f func(ctx context.Context, h *daemon.House) error) (err error) {
	c, err := a.load()
	if err != nil {
		return err
	}
	h, err := daemon.OpenTo(cmd.Context(), use, c, slog.New(slog.NewTextHandler(a.err, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(cmd.Context()))) }()
	return f(cmd.Context(), h)
}

// runnerKeyJSON is a key as it is shown.
type runnerKeyJSON struct {
	daemon.RunnerKey
	State string `json:"state"`
}

func toRunnerKey(k daemon.RunnerKey) runnerKeyJSON {
	state := "in force"
	switch {
	case !k.Revoked.IsZero():
		state = "revoked"
	case !k.InForce(time.Now()):
		state = "expired"
	}
	return runnerKeyJSON{k, state}
}

func (a *app) runnerKeyCreateCmd() *cobra.Command {
	var tenants []string
	var expires string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a key and print its secret, once",
		Long: `Makes a key for a host that asks this runner for runs. NAME is that host's: it stands in
the log, and tickets are bound to it. The key lets it ask for the runs of the tenants
that are named, and of nobody else; '*' is all of them. The secret is printed on
standard output, once: of it a hash alone is kept.`,
		Example: `  tracon runner key create control-plane --tenants acme,beta --expires 2160h
  tracon runner key create control-plane --tenants '*'`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(tenants) == 0 {
				return usage(cmd, hint(errors.New("--tenants is missing"), "name the tenants whose runs the key may ask for; '*' is all of them"))
			}
			if err := errors.Join(grant.CheckName("key", args[0]), config.CheckTenants(tenants)); err != nil {
				return usage(cmd, err)
			}
			until, err := parseExpiry(expires, time.Now())
			if err != nil {
				return err
			}
			return a.atRunner(cmd, daemon.Make, func(ctx context.Context, h *daemon.House) error {
				k, secret, err := h.CreateRunnerKey(ctx, a.who(), args[0], tenants, until)
				if err != nil {
					return err
				}
				return a.showRunnerSecret(k, secret)
			})
		},
	}
	cmd.Flags().StringSliceVar(&tenants, "tenants", nil, "tenants whose runs it may ask for, with commas; '*' is all of them")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: a duration such as 720h, or a time such as 2027-01-31T00:00:00Z (default: never)")
	return cmd
}

func (a *app) showRunnerSecret(k daemon.RunnerKey, secret access.Secret) error {
	if a.json {
		return a.printJSON(struct {
			Key    runnerKeyJSON `json:"key"`
			Secret string        `json:"secret"`
		}{toRunnerKey(k), secret.Reveal()})
	}
	fmt.Fprintln(a.out, secret.Reveal())
	a.say("this is the secret of the runner's key %s (%s, for %s)%s; keep it now, it is not shown again", k.ID, k.Name, strings.Join(k.Tenants, ", "), until(k.Expires))
	return nil
}

func (a *app) runnerKeyListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys, the newest first, without their secrets",
		Example: `  tracon runner key list
  tracon runner key list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.atRunner(cmd, daemon.List, func(_ context.Context, h *daemon.House) error {
				keys, err := h.RunnerKeys()
				if err != nil {
					return err
				}
				list := []runnerKeyJSON{}
				rows := [][]string{{"KEY", "STATE", "NAME", "TENANTS"}}
				for _, k := range keys {
					shown := toRunnerKey(k)
					list = append(list, shown)
					rows = append(rows, []string{k.ID, shown.State + until(k.Expires), k.Name, strings.Join(k.Tenants, ",")})
				}
				if a.json {
					return a.printJSON(list)
				}
				return a.table(rows)
			})
		},
	}
}

func (a *app) runnerKeyRevokeCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "revoke KEY",
		Short:             "Take a key back: from now on it lets nobody in",
		Example:           `  tracon runner key revoke mfrggzdfmztwq2lk`,
		Args:              exactly("KEY"),
		ValidArgsFunction: a.completeRunnerKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atRunner(cmd, daemon.Make, func(ctx context.Context, h *daemon.House) error {
				k, err := h.RevokeRunnerKey(ctx, a.who(), args[0])
				if errors.Is(err, grant.ErrNotFound) {
					return hint(err, "`tracon runner key list` lists the keys")
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(toRunnerKey(k))
				}
				fmt.Fprintf(a.out, "revoked the runner's key %s (%s)\n", k.ID, harmless(k.Name, false))
				return nil
			})
		},
	}
}
