package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

// completeSkill completes SKILL with the known names, beside the shell's own
// folders, and SCRIPT with the scripts of that skill.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	h := a.quietHouse(cmd)
	if h == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	defer h.Close(cmd.Context())
	switch len(args) {
	case 0:
		if h.AddRoots() == nil {
			for _, s := range h.Skills.List() {
				words = append(words, s.Name+"\t"+shorten(s.Description, 60))
			}
		}
		return words, cobra.ShellCompDirectiveDefault // folders too
	case 1:
		name, err := h.SkillName(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, s := range h.Skills.List() {
			if s.Name == name {
				words = append(words, s.Scripts...)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeGrant completes GRANT with those in force.
func (a *app) completeGrant(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h := a.quietHouse(cmd)
	if h == nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer h.Close(cmd.Context())
	grants, err := h.Admin.Grants(cmd.Context(), a.tenant, grant.Filter{Limit: 100})
	var words []string
	for _, g := range grants {
		if err == nil && g.Revoked.IsZero() {
			words = append(words, g.ID+"\t"+g.Ref.String())
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// quietHouse opens the house for a completion, which says nothing and makes
// nothing.
func (a *app) quietHouse(cmd *cobra.Command) *daemon.House {
	c, err := a.load()
	if err != nil || gate.CheckTenant(a.tenant) != nil {
		return nil
	}
	h, err := daemon.OpenTo(cmd.Context(), daemon.List, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	return h
}

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages into a folder",
		Example: `  tracon man ~/.local/share/man/man1
  man tracon-run`,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "TRACON", Section: "1", Source: "Tracon"}, args[0]); err != nil {
				return err
			}
			if !a.json {
				fmt.Fprintf(a.out, "manual pages in %s\n", args[0])
				return nil
			}
			pages := []string{}
			entries, err := os.ReadDir(args[0])
			for _, e := range entries {
				if name := e.Name(); strings.HasPrefix(name, "tracon") && strings.HasSuffix(name, ".1") {
					pages = append(pages, name)
				}
			}
			return errors.Join(err, a.printJSON(map[string]any{"folder": args[0], "files": pages}))
		},
	}
}
