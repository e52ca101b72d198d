package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/retention"
)

func (a *app) tenantDeleteCmd() *cobra.Command {
	var reason string
	var preview, yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a tenant for ever, with everything but its entries in the log",
		Long: `Deletes a tenant for ever: its keys let nobody in any more, nothing of it runs, its
grants and skills are taken back, its policy is emptied, and its records are erased,
with the contents that no other tenant names. The log keeps its entries and stays
verifiable; what it commits to of arguments and output tells nothing any more, because
the salts go with the records. Names, actors and reasons in the log stay.

The name is not given again. While runs of the tenant are under way nothing is done:
switch it off with ` + "`tracon tenant set NAME --off`" + `, and cancel them or wait for them.
When it was interrupted, say it again: it goes on with what is there still.

It asks for the tenant's name where there is a terminal; else it takes --yes.`,
		Example: `  tracon tenant delete acme --preview
  tracon tenant delete acme --yes --reason "the contract ended"`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			use := daemon.Make
			if preview {
				use = daemon.List
			}
			return a.at(cmd, use, func(ctx context.Context, b backend) error {
				d, err := b.DeleteTenant(ctx, name, "", true)
				if err != nil {
					return hintTenant(err)
				}
				if preview {
					return a.showDeletion(d, "would be taken away")
				}
				if !yes {
					if err := a.confirmDeletion(ctx, name, d); err != nil {
						return err
					}
				}
				d, err = b.DeleteTenant(ctx, name, reason, false)
				if errors.Is(err, admin.ErrUnderWay) {
					return hint(err, "`tracon tenant set %s --off` keeps more from starting; cancel those or wait for them, then say it again", quoteWords(name))
				}
				if err != nil {
					return hint(err, "say it again: it goes on with what is there still")
				}
				return a.showDeletion(d, "taken away")
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	cmd.Flags().BoolVar(&preview, "preview", false, "only count what would be taken away")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	apart(cmd, "preview", "yes")
	return cmd
}

// confirmDeletion has a person write the tenant's name.
func (a *app) confirmDeletion(ctx context.Context, name string, d retention.Deletion) error {
	if !a.inTTY || a.json {
		return hint(errors.New("deleting a tenant is for ever, and nobody is there to be asked"), "look with --preview, then say --yes")
	}
	if err := a.showDeletion(d, "would be taken away"); err != nil {
		return err
	}
	answer, err := a.answer(ctx, "Write the tenant's name to delete it for ever: ")
	if err == nil && answer != name {
		err = errors.New("nothing was deleted")
	}
	return err
}

func (a *app) showDeletion(d retention.Deletion, what string) error {
	if a.json {
		return a.printJSON(d)
	}
	_, err := fmt.Fprintf(a.out, "%s: %d keys, %d grants, %d skills, %d records of calls, %d contents\n", what, d.Keys, d.Grants, d.Skills, d.Calls, d.Contents)
	if err == nil && d.UnderWay > 0 {
		a.say("%d runs are under way: while there is one the tenant is not deleted", d.UnderWay)
	}
	return err
}
