package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/retention"
)

func (a *app) retentionCmd() *cobra.Command {
	return group("retention", "Erase what is kept beside the log, when its time is over",
		`  tracon retention show
  tracon retention preview --calls 2160h`,
		a.retentionShowCmd(), a.retentionPreviewCmd(), a.retentionApplyCmd())
}

// ruleFlags are rules of one invocation; a flag that is not given leaves the
// configuration's.
type ruleFlags struct{ contents, calls, details time.Duration }

func (f *ruleFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.contents, "contents", 0, "instead of keep_contents, such as 2160h; 0 keeps for ever")
	cmd.Flags().DurationVar(&f.calls, "calls", 0, "instead of keep_calls")
	cmd.Flags().DurationVar(&f.details, "details", 0, "instead of keep_details")
}

func (f *ruleFlags) rules(cmd *cobra.Command, h *daemon.House) retention.Rules {
	r := h.Rules()
	for name, to := range map[string]struct {
		rule *time.Duration
		flag time.Duration
	}{"contents": {&r.Contents, f.contents}, "calls": {&r.Calls, f.calls}, "details": {&r.Details, f.details}} {
		if cmd.Flags().Changed(name) {
			*to.rule = to.flag
		}
	}
	return r
}

func (a *app) retentionShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show how long what is kept stays",
		Example: `  tracon retention show
  TRACON_KEEP_CALLS=2160h tracon retention show`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.houseTo(cmd, daemon.List, func(_ context.Context, h *daemon.House) error {
				r := h.Rules()
				if a.json {
					return a.printJSON(map[string]float64{"contentsSeconds": r.Contents.Seconds(), "callsSeconds": r.Calls.Seconds(), "detailsSeconds": r.Details.Seconds()})
				}
				return a.pairs([][]string{{"contents", stays(r.Contents)}, {"calls", stays(r.Calls)}, {"details", stays(r.Details)}})
			})
		},
	}
}

func stays(d time.Duration) string {
	if d == 0 {
		return "for ever"
	}
	return d.String()
}

func (a *app) retentionPreviewCmd() *cobra.Command {
	var f ruleFlags
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Count what `retention apply` would erase now",
		Example: `  tracon retention preview
  tracon retention preview --calls 2160h --details 720h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.houseTo(cmd, daemon.List, func(ctx context.Context, h *daemon.House) error {
				done, err := h.Expired(ctx, f.rules(cmd, h))
				if err != nil {
					return err
				}
				return a.showErasure(done, "would be erased")
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) retentionApplyCmd() *cobra.Command {
	var f ruleFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Erase what is over its time, of every tenant",
		Long: `Erases, for every tenant, the records of calls and their details whose time is
over, and the contents that no grant in force and no imported skill needs any
more. Each erasure has its entry in the log, in the same transaction. The log
itself stays whole: its entries, their hashes, and the commitments to arguments
and output, which tell nothing without the salt that goes with the details.

Without rules in the configuration or in flags everything is kept for ever.
Look with ` + "`tracon retention preview`" + ` first: what is erased does not come back.`,
		Example: `  tracon retention apply
  tracon retention apply --calls 2160h --details 720h --contents 2160h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				stop := a.progress("erasing").during()
				done, err := h.Erase(ctx, a.who(), f.rules(cmd, h))
				stop()
				if err != nil {
					return err
				}
				return a.showErasure(done, "erased")
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) showErasure(e retention.Erasure, what string) error {
	if a.json {
		return a.printJSON(e)
	}
	_, err := fmt.Fprintf(a.out, "%s: %d contents, %d records of calls, the details of %d more\n", what, e.Contents, e.Calls, e.Details)
	return err
}
