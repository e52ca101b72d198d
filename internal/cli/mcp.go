package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) mcpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp [FOLDER]...",
		Short: "Give a model the skills, over the Model Context Protocol on standard input and output",
		Long: `Speaks the Model Context Protocol on standard input and output, for one client that
starts it: the tenant's skills, and those in the folders that are named, each a
skill or a folder of skills.

The model lists, loads and reads them. It is offered to run scripts when one is
granted, and no longer when none is: a grant that is made or taken back meanwhile
(` + "`tracon grant add`, `tracon grant revoke`" + `) counts at once. What still stands in
the way, such as a switch, is said on standard error at the start. Each call passes the
same gates as ` + "`tracon run`" + `, and stands in the same log.

Standard output is the protocol's, which is JSON already: --json changes nothing.
A client is told of it in one line; docs/clients.md has that line for the usual ones.`,
		Example: `  tracon mcp
  tracon mcp ~/skills
  claude mcp add tracon -- tracon mcp ~/skills`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, folders []string) error {
			if c, err := a.load(); err == nil && c.Server != "" {
				return hint(refuseServer(cmd, c.Server, ""), "a server has the skills for a model itself, %s: docs/clients.md has the lines for clients; for those of this machine %s", mcpOf(c.Server), strings.TrimSuffix(withoutServer(c), ","))
			}
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				for _, f := range folders {
					if err := a.addSkills(h, f); err != nil {
						return err
					}
				}
				if err := a.sayNotOffered(ctx, a.local(h)); err != nil {
					return err
				}
				log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
				p := access.Principal{Tenant: a.tenant, Actor: a.who(), Roles: []access.Role{access.Operator}}
				err := h.ServeStdio(ctx, io.NopCloser(a.in), nopWriteCloser{a.out}, p, version().Version, log)
				if ctx.Err() != nil {
					return nil // a client that has done with it sends a signal
				}
				return err
			})
		},
	}
}

// mcpOf says where a server has the skills for a model.
func mcpOf(server string) string {
	if strings.HasPrefix(server, "unix:") {
		return "at /mcp of its address"
	}
	return "at " + strings.TrimSuffix(server, "/") + "/mcp"
}

// sayNotOffered says why the client is not offered to run scripts, or why what it runs
// is refused.
func (a *app) sayNotOffered(ctx context.Context, b backend) error {
	grants, err := b.Grants(ctx, grant.Filter{Limit: 1000})
	if err != nil {
		return err
	}
	var held []grant.Grant
	for _, g := range grants {
		if g.decides() {
			held = append(held, g.Grant)
		}
	}
	if len(held) == 0 {
		a.say("tracon: no script is granted to tenant %s, so the model only reads skills; `tracon grant review FOLDER SCRIPT` shows one, and the command that grants it", b.Tenant())
	}
	a.sayShut(ctx, b, held)
	return nil
}

// addSkills adds the skill in the folder, or those below it where it is none.
func (a *app) addSkills(h *daemon.House, folder string) error {
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(a.dir, folder)
	}
	if _, err := os.Lstat(filepath.Join(folder, "SKILL.md")); err == nil {
		_, err := h.SkillName(folder)
		return err
	}
	return h.Skills.AddRoot(folder)
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
