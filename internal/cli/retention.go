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

// ruleFlags are rules of one invocation; a flag that is not given, and is nil, leaves
// the configuration's.
type ruleFlags struct{ contents, calls, details *time.Duration }

// ruleFlag is a time that may not have been given.
type ruleFlag struct{ to **time.Duration }

func (f ruleFlag) Type() string { return "duration" }
func (f ruleFlag) String() string {
	if f.to == nil || *f.to == nil {
		return ""
	}
	return (*f.to).String()
}

func (f ruleFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil {
		*f.to = &d
	}
	return err
}

func (f *ruleFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(ruleFlag{&f.contents}, "contents", "instead of keep_contents, such as 2160h; 0 keeps for ever")
	cmd.Flags().Var(ruleFlag{&f.calls}, "calls", "instead of keep_calls")
	cmd.Flags().Var(ruleFlag{&f.details}, "details", "instead of keep_details")
}

// over returns the rules with what was given in their place.
func (f ruleFlags) over(r retention.Rules) retention.Rules {
	for to, by := range map[*time.Duration]*time.Duration{&r.Contents: f.contents, &r.Calls: f.calls, &r.Details: f.details} {
		if by != nil {
			*to = *by
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
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				r, err := b.Rules(ctx)
				if err != nil {
					return err
				}
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
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				done, err := b.Erase(ctx, f, true)
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
Look with ` + "`tracon retention preview`" + ` first: what is erased does not come back.

On a server, which takes a key of the platform, what no flag says is as in its own
configuration.`,
		Example: `  tracon retention apply
  tracon retention apply --calls 2160h --details 720h --contents 2160h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				stop := a.progress("erasing").during()
				done, err := b.Erase(ctx, f, false)
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
