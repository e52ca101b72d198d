package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

// completeSkill completes SKILL with the known names, beside the shell's own
// folders, and SCRIPT with the scripts of that skill.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) (words []string, d cobra.ShellCompDirective) {
	d = cobra.ShellCompDirectiveNoFileComp
	switch len(args) {
	case 0:
		d = cobra.ShellCompDirectiveDefault // folders too
		a.quietly(cmd, nil, func(ctx context.Context, b backend) {
			list, err := b.Skills(ctx)
			if err != nil {
				return
			}
			for _, v := range list.Imported {
				words = append(words, v.Skill+"\timported "+v.Imported.Local().Format(time.DateOnly))
			}
			for _, s := range list.Skills {
				words = append(words, s.Name+"\t"+shorten(s.Description, 60))
			}
		})
	case 1:
		a.quietly(cmd, args, func(ctx context.Context, b backend) {
			if s, err := b.Skill(ctx, args[0]); err == nil {
				for _, sc := range s.Scripts {
					words = append(words, sc.Path+"\t"+shorten(sc.Description, 60))
				}
			}
		})
	}
	return words, d
}

// completeGrant completes GRANT with those in force.
func (a *app) completeGrant(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		a.quietly(cmd, nil, func(ctx context.Context, b backend) {
			grants, err := b.Grants(ctx, grant.Filter{Limit: 100})
			for _, g := range grants {
				if err == nil && g.decides() {
					words = append(words, g.ID+"\t"+g.Ref.String())
				}
			}
		})
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeRunner completes NAME with the runners of the fleet that answer. What a link to
// it takes is not waited for longer than a server is.
func (a *app) completeRunner(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	c, err := a.load()
	if err != nil || len(args) > 0 || a.server != "" { // the verb refuses --server
		return nil, none
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completeTime)
	defer stop()
	found := make(chan []string, 1)
	go func() {
		var words []string
		list, _ := fleetRunners(ctx, c) // a completion says nothing
		for _, r := range list {
			words = append(words, fmt.Sprintf("%s\t%s in pool %s, %d of %d places taken", harmless(r.Name, false), r.State, r.Pool, r.Busy, r.Slots))
		}
		found <- words
	}()
	select {
	case words := <-found:
		return words, none
	case <-ctx.Done(): // while the link is made, which nothing else ends
		return nil, none
	}
}

// completeRunnerKey completes KEY with the runner's keys in force.
func (a *app) completeRunnerKey(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 && a.server == "" {
		q := *a
		q.err = io.Discard
		_ = q.atRunner(cmd, daemon.List, func(_ context.Context, h *daemon.House) error { // a completion says nothing
			keys, err := h.RunnerKeys()
			for _, k := range keys {
				if k.InForce(time.Now()) {
					words = append(words, k.ID+"\t"+k.Name)
				}
			}
			return err
		})
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeTime is how long somebody who pressed the tabulator waits for a server.
const completeTime = 2 * time.Second

// quietly calls f with what a verb would act on whose words name these skills, for a
// completion: it says nothing, makes nothing, and does not call f where that fails.
func (a *app) quietly(cmd *cobra.Command, skills []string, f func(ctx context.Context, b backend)) {
	q := *a
	q.err, q.errTTY = io.Discard, false
	q.tenantGiven = cmd.Flags().Changed("tenant")
	c, err := q.load()
	if err != nil || gate.CheckTenant(q.tenant) != nil {
		return
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completeTime)
	defer stop()
	if c.Server != "" {
		if r, err := q.connect(ctx, c); err == nil {
			f(ctx, r)
		}
		return
	}
	if !slices.ContainsFunc(skills, daemon.IsFolder) {
		if r := q.beside(ctx, c); r != nil {
			f(ctx, r)
			return
		}
	}
	h, err := daemon.OpenTo(ctx, daemon.List, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return
	}
	defer h.Close(context.WithoutCancel(ctx))
	f(ctx, q.local(h))
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
