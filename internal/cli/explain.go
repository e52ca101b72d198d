package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) explainCmd() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "explain [flags] SKILL SCRIPT [-- ARGUMENT...]",
		Short: "Ask every gate about a call, and run nothing",
		Long: `Asks every gate about a call and shows each answer, also behind a gate that says
no. Nothing runs and nothing is written. Exits 0 when each gate says yes, else 126.`,
		Example:           `  tracon explain unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934`,
		Args:              callArgs,
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atSkill(cmd, daemon.Make, args[:1], func(ctx context.Context, b backend) error {
				call, err := f.build(ctx, a, b, args)
				if d, ok := errors.AsType[*gate.Denial](err); ok {
					return &exitWith{exitRefused, hint(err, "%s", d.Remedy)}
				}
				if err != nil {
					return err
				}
				verdicts, err := b.Explain(ctx, call)
				if err != nil {
					return err
				}
				var exit error
				rows := [][]string{{"GATE", "ANSWER", "WHY", "WHAT TO DO"}}
				for _, v := range verdicts {
					if v.Answer != gate.Yes {
						exit = &exitWith{exitRefused, nil}
					}
					rows = append(rows, []string{string(v.Gate), string(v.Answer), v.Detail, v.Remedy})
				}
				if a.json {
					err = a.printJSON(struct {
						Admitted bool           `json:"admitted"`
						Gates    []gate.Verdict `json:"gates"`
					}{exit == nil, verdicts})
				} else {
					err = a.styled(rows, true, func(row, column int) style {
						if column != 1 {
							return plain
						}
						return map[gate.Answer]style{gate.Yes: green, gate.No: red, gate.Failed: red, gate.Unasked: yellow}[verdicts[row-1].Answer]
					})
				}
				if err != nil {
					return err
				}
				return exit
			})
		},
	}
	f.register(cmd)
	return cmd
}
