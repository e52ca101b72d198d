package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/toolcall"
)

func (a *app) callsCmd() *cobra.Command {
	return group("calls", "List what came of admitted calls",
		`  tracon calls list --limit 20`,
		a.callsListCmd(), a.callsShowCmd(), a.callsUsageCmd())
}

func (a *app) callsListCmd() *cobra.Command {
	var f toolcall.Filter
	cmd := &cobra.Command{
		Use:     "list",
		Example: `  tracon calls list --skill unit-converter --limit 20`,
		Short:   "List the newest calls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Before != "" && !id.Valid(f.Before) {
				return hint(fmt.Errorf("--before: %q is no id of a call", f.Before), "`tracon calls list` shows the ids")
			}
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				calls, err := b.Calls(ctx, f)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(append([]toolcall.Record{}, calls...))
				}
				rows := [][]string{{"CALL", "ENDED", "SKILL", "SCRIPT", "ENDING", "DURATION"}}
				for _, c := range calls {
					rows = append(rows, []string{c.ID, c.Ended.Local().Format(time.DateTime), c.Skill, c.Script, endingOf(c), round(c.Duration)})
				}
				return a.table(rows)
			})
		},
	}
	cmd.Flags().StringVar(&f.Skill, "skill", "", "only calls of this skill")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many")
	cmd.Flags().StringVar(&f.Before, "before", "", "only calls older than this one")
	return cmd
}

func endingOf(c toolcall.Record) string {
	switch {
	case c.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *c.ExitCode)
	case c.Signal != nil:
		return fmt.Sprintf("signal %d", *c.Signal)
	}
	return c.Ending
}

func round(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func (a *app) callsShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "show CALL",
		Example: `  tracon calls show 01a2291f-c8e1-7a16-af1b-81823579f6fb`,
		Short:   "Show the record of one call and its entries in the log",
		Args:    exactly("CALL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				c, leaves, err := b.Call(ctx, args[0])
				if errors.Is(err, toolcall.ErrNotFound) {
					return hint(err, "`tracon calls list` lists the calls of tenant %s", b.Tenant())
				}
				if err != nil {
					return err
				}
				entries := []entryJSON{}
				for _, leaf := range leaves {
					entries = append(entries, toEntryJSON(leaf))
				}
				if a.json {
					return a.printJSON(struct {
						Call    toolcall.Record `json:"call"`
						Entries []entryJSON     `json:"entries"`
					}{c, entries})
				}
				rows := [][]string{{"call", c.ID}, {"tenant", c.Tenant}, {"actor", c.Actor}, {"skill", c.Skill}, {"script", c.Script},
					{"digest", c.Digest.String()}, {"script digest", c.ScriptDigest.String()}, {"grant", c.Grant},
					{"executor", c.Executor + " (tier " + c.Tier + ")"},
					{"arguments", fmt.Sprintf("%d bytes, %s", c.ArgumentsBytes, c.ArgumentsDigest)}}
				if c.Arguments != "" {
					rows = append(rows, []string{"", c.Arguments})
				}
				rows = append(rows, []string{"admitted", c.Admitted.Local().Format(time.DateTime)}, []string{"ended", c.Ended.Local().Format(time.DateTime)},
					[]string{"waited", round(c.Waited)}, []string{"duration", round(c.Duration)}, []string{"ending", endingOf(c)},
					[]string{"output", fmt.Sprintf("%d bytes on stdout, %d on stderr, truncated: %v", c.StdoutBytes, c.StderrBytes, c.Truncated)},
					[]string{"files", fmt.Sprintf("%d, %d bytes", c.OutputFiles, c.OutputBytes)})
				for _, n := range c.Notes {
					rows = append(rows, []string{"note", n})
				}
				for _, e := range entries {
					rows = append(rows, []string{"log", fmt.Sprintf("%s, entry %d, %s", e.Kind, e.Index, e.Hash)})
				}
				return a.pairs(rows)
			})
		},
	}
}

// usageJSON is what the calls of one skill came to on one day, as --json writes it.
type usageJSON struct {
	Day             string  `json:"day"`
	Skill           string  `json:"skill"`
	Calls           int64   `json:"calls"`
	Succeeded       int64   `json:"succeeded"` // with exit code 0
	DurationSeconds float64 `json:"durationSeconds"`
	WaitedSeconds   float64 `json:"waitedSeconds"`
	OutputBytes     int64   `json:"outputBytes"`
}

func (a *app) callsUsageCmd() *cobra.Command {
	var f toolcall.DailyFilter
	var from, to string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what calls came to, by day and skill",
		Long: `Shows how many calls of each skill ended on each day (UTC), how many of them with
exit code 0, how long they ran and waited for a slot, and how much they wrote. It
is counted as calls end, and stays when their records are erased.`,
		Example: `  tracon calls usage --from 2026-11-01 --to 2026-11-30`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, d := range []struct {
				flag, text string
				day        *time.Time
			}{{"from", from, &f.From}, {"to", to, &f.To}} {
				if d.text == "" {
					continue
				}
				var err error
				if *d.day, err = time.Parse(time.DateOnly, d.text); err != nil {
					return usage(cmd, fmt.Errorf("--%s: %q is no day; write it as 2026-11-30", d.flag, d.text))
				}
			}
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				sums, err := b.Usage(ctx, f)
				if err != nil {
					return err
				}
				list := []usageJSON{}
				rows := [][]string{{"DAY", "SKILL", "CALLS", "SUCCEEDED", "DURATION", "WAITED", "OUTPUT"}}
				for _, u := range sums {
					j := usageJSON{u.Day.Format(time.DateOnly), u.Skill, u.Calls, u.Succeeded, u.Duration.Seconds(), u.Waited.Seconds(), u.OutputBytes}
					list = append(list, j)
					rows = append(rows, []string{j.Day, j.Skill, fmt.Sprint(j.Calls), fmt.Sprint(j.Succeeded), round(u.Duration), round(u.Waited), fmt.Sprintf("%d bytes", j.OutputBytes)})
				}
				if a.json {
					return a.printJSON(list)
				}
				return a.table(rows)
			})
		},
	}
	cmd.Flags().StringVar(&f.Skill, "skill", "", "only calls of this skill")
	cmd.Flags().StringVar(&from, "from", "", "first day, such as 2026-11-01")
	cmd.Flags().StringVar(&to, "to", "", "last day")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many lines")
	return cmd
}
