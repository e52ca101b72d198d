package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// A fleetRunner is a runner of a fleet as it is shown.
type fleetRunner struct {
	Pool     string   `json:"pool"`
	Name     string   `json:"name"`
	Member   string   `json:"member"`
	State    string   `json:"state"` // "ready" or "draining"
	Busy     int      `json:"busy"`
	Slots    int      `json:"slots"`
	Tier     string   `json:"tier"`
	Runtimes []string `json:"runtimes"`
}

// fleetRunners asks the fleet who is there.
func fleetRunners(ctx context.Context, c *config.Config) (list []fleetRunner, err error) {
	e, err := daemon.Fleet(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("the fleet: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	all, err := e.Runners(ctx)
	list = []fleetRunner{}
	for _, r := range all {
		one := fleetRunner{Pool: r.Pool, Name: r.Info.Name, Member: r.Member, State: "ready", Busy: r.Info.Busy, Slots: r.Info.Slots, Tier: r.Info.Tier, Runtimes: []string{}}
		if r.Info.Draining {
			one.State = "draining"
		}
		for _, runtime := range r.Info.Runtimes {
			one.Runtimes = append(one.Runtimes, runtime.Name)
		}
		list = append(list, one)
	}
	return list, err
}

func (a *app) runnerListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runners of the fleet that answer",
		Long: `Asks the fleet's NATS servers, at fleet_urls and with the seed of fleet_seed_file, who is
there. What a runner tells of itself is its own word.`,
		Example: `  tracon runner list
  tracon runner list --json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load()
			if err != nil {
				return err
			}
			list, err := fleetRunners(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			rows := [][]string{{"POOL", "NAME", "STATE", "BUSY", "SLOTS", "TIER", "RUNTIMES"}}
			for _, r := range list {
				rows = append(rows, []string{r.Pool, r.Name, r.State, fmt.Sprint(r.Busy), fmt.Sprint(r.Slots), r.Tier, strings.Join(r.Runtimes, " ")})
			}
			return a.table(rows)
		},
	}
}

func (a *app) runnerDrainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "drain NAME",
		Short: "Have a runner of the fleet take no more runs",
		Long: `Has every runner of that name take no more runs of the fleet. Those under way go on. It
holds until the runner is started again.`,
		Example:           `  tracon runner drain runner-3`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeRunner,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.load()
			if err != nil {
				return err
			}
			e, err := daemon.Fleet(c, slog.New(slog.DiscardHandler))
			if err != nil {
				return fmt.Errorf("the fleet: %w", err)
			}
			defer func() { _ = e.Close() }()
			n, err := e.Drain(cmd.Context(), args[0])
			if err != nil {
				return hint(err, "`tracon runner list` shows who is there")
			}
			if a.json {
				return a.printJSON(struct {
					Drained int `json:"drained"`
				}{n})
			}
			_, err = io.WriteString(a.out, fmt.Sprintf("%d told: %s takes no more runs\n", n, harmless(args[0], true)))
			return err
		},
	}
}

func (a *app) runnerJoinKeyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "join-key FILE",
		Short: "Make the key by which a host speaks in a fleet",
		Long: `Writes the seed of a new key to FILE, which must not be there and which nobody else may
read, and prints its public half. A runner has the file as fleet_seed_file, and the
server the public half in fleet_members; a control plane or an operator likewise in
fleet_hosts.`,
		Example: `  tracon runner join-key /etc/tracon/fleet.seed`,
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			seed, public, err := daemon.NewFleetSeed()
			if err != nil {
				return err
			}
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(append(seed, '\n'))
			if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Public string `json:"public"`
				}{public})
			}
			_, err = fmt.Fprintln(a.out, public)
			return err
		},
	}
}
