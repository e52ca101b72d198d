package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

// finding is one line of what the doctor says.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// examination is what the doctor says.
type examination struct {
	OK         bool             `json:"ok"` // what the exit code says
	Required   grant.Tier       `json:"requiredTier,omitempty"`
	TierStands bool             `json:"tierStands"`
	Findings   []finding        `json:"findings"`
	Posture    executor.Posture `json:"posture"`
}

func (a *app) doctorCmd() *cobra.Command {
	var tier string
	cmd := &cobra.Command{
		Use:         "doctor",
		Annotations: map[string]string{ownEyes: "yes"},
		Example: `  tracon doctor
  tracon doctor --tier sandbox && echo safe to go on
  tracon doctor --json`,
		Short: "Look at this installation: data, log, switches, interpreters, walls",
		Long: `Looks at what a run needs, and says what is missing and how to get it. Exits 0 when
scripts can run, else 1. A wall that the executor does not claim is told, and is
no fault by itself. Where runners run the scripts it asks them who is there, what they
can run and whether they take runs; it has nothing run there.

The tier that is asked for must stand: by --tier, or else by the tenant's policy and
its grants in force. With --tier the exit code says that alone: 0 when a tier as high
stands here, else 1, whatever else is amiss.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tier != "" && !grant.Tier(tier).Valid() {
				return usage(cmd, fmt.Errorf("--tier %q: the tiers are %v", tier, grant.Tiers()))
			}
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				x, err := b.Examine(ctx, grant.Tier(tier))
				if err != nil {
					return err
				}
				var exit error
				if !x.OK {
					exit = &exitWith{exitError, nil}
				}
				if a.json {
					return errors.Join(a.printJSON(x), exit)
				}
				rows := [][]string{}
				for _, f := range x.Findings {
					rows = append(rows, told(mark(f.OK, "ok", "AMISS"), f.What, f.Detail, f.Remedy)...)
				}
				for _, w := range x.Posture.Walls {
					rows = append(rows, told(mark(w.Stands, "stands", "no wall"), w.Name, w.Proof, w.Remedy)...)
				}
				return errors.Join(a.styled(rows, false, func(row, column int) style {
					switch {
					case column > 0:
						return plain
					case rows[row][0] == "ok" || rows[row][0] == "stands":
						return green
					case rows[row][0] == "AMISS":
						return red
					}
					return yellow
				}), exit)
			})
		},
	}
	cmd.Flags().StringVar(&tier, "tier", "", "tier that must stand here: process, sandbox, kernel, vm; the exit code says whether it does")
	return cmd
}

// told are the rows of one finding: what to do stands below what is.
func told(mark, what, detail, remedy string) [][]string {
	rows := [][]string{{mark, what, detail}}
	if remedy != "" {
		rows = append(rows, []string{"", "", "→ " + remedy})
	}
	return rows
}

func mark(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}
