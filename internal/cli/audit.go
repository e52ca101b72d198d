package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) auditCmd() *cobra.Command {
	return group("audit", "Read the log and check that it adds up", a.auditListCmd(), a.auditVerifyCmd())
}

// entryJSON is an entry as the API writes it.
type entryJSON struct {
	Index   uint64            `json:"index"`
	Hash    audit.Hash        `json:"hash"`
	Seq     uint64            `json:"seq"`
	ID      string            `json:"id"`
	Time    time.Time         `json:"time"`
	Tenant  string            `json:"tenant"`
	Actor   string            `json:"actor"`
	Kind    audit.Kind        `json:"kind"`
	Subject string            `json:"subject"`
	Run     string            `json:"run,omitempty"`
	Count   uint64            `json:"count"`
	Facts   map[string]string `json:"facts"`
}

func toEntryJSON(l audit.Leaf) entryJSON {
	e := l.Entry
	facts := map[string]string{}
	for _, f := range e.Facts {
		facts[f.Name] = f.Value
	}
	return entryJSON{l.Index, l.Hash, l.Seq, e.ID, e.Time, e.Tenant, e.Actor, e.Kind, e.Subject, e.Run, e.Count, facts}
}

func (a *app) auditListCmd() *cobra.Command {
	var all bool
	var from uint64
	var kind, run string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entries of the log",
		Example: `  tracon audit list
  tracon audit list --kind refusal
  tracon audit list --run 01991f3a-… --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				tenant := a.tenant
				if all {
					tenant = ""
				}
				rows := [][]string{{"INDEX", "TIME", "TENANT", "ACTOR", "KIND", "SUBJECT", "WHAT"}}
				list := []entryJSON{}
				for leaf, err := range h.Log.Entries(ctx, tenant, from) {
					if err != nil {
						return err
					}
					e := leaf.Entry
					if kind != "" && string(e.Kind) != kind || run != "" && e.Run != run {
						continue
					}
					if a.json {
						list = append(list, toEntryJSON(leaf))
						continue
					}
					rows = append(rows, []string{fmt.Sprint(leaf.Index), e.Time.Local().Format(time.DateTime), e.Tenant, e.Actor, string(e.Kind), e.Subject, gist(e)})
				}
				if a.json {
					return a.printJSON(list)
				}
				return a.table(rows)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&all, "all-tenants", false, "list the entries of all tenants, and the host's own")
	f.Uint64Var(&from, "from", 0, "begin at the entry of this index")
	f.StringVar(&kind, "kind", "", "only entries of this kind: admission, refusal, ending, grant, revoke, policy, host, runtime")
	f.StringVar(&run, "run", "", "only entries of this call")
	return cmd
}

// gist is what an entry says, in a few words.
func gist(e audit.Entry) string {
	switch e.Kind {
	case audit.Refusal:
		return e.Fact("gate") + ": " + e.Fact("reason")
	case audit.Ending:
		parts := []string{e.Fact("ending")}
		for _, name := range []string{"exitCode", "signal", "gate"} {
			if v := e.Fact(name); v != "" {
				parts = append(parts, name+" "+v)
			}
		}
		return strings.Join(append(parts, "in "+e.Fact("duration")), ", ")
	case audit.Admission:
		return e.Fact("digest") + " by grant " + e.Fact("grant")
	case audit.Granted, audit.Revoked:
		return e.Fact("digest") + " " + e.Fact("reason")
	}
	return e.Fact("after")
}

func (a *app) auditVerifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "verify",
		Example: `  tracon audit verify --json`,
		Short:   "Compute the whole log again and compare",
		Long: `Computes the log again from its leaves: that each has the hash that is kept for
it, stands at its place, follows its tenant's entry before it, and that all have
the root that is kept. Exits 1 and names the first bad entry when it does not
add up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				bar := a.progress("entries verified")
				tree, err := h.Log.Verify(ctx, bar.show)
				bar.done()
				result := map[string]any{"ok": err == nil, "size": tree.Size, "root": tree.Root}
				if err != nil {
					result = map[string]any{"ok": false, "error": err.Error()}
					if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
						result["index"] = broken.Index
					}
				}
				if a.json {
					if perr := a.printJSON(result); perr != nil {
						return perr
					}
					if err != nil {
						return &exitWith{exitError, nil}
					}
					return nil
				}
				if err != nil {
					return hint(err, "keep the database as it is, and compare it with a backup")
				}
				fmt.Fprintf(a.out, "ok: %d entries, root %s\n", tree.Size, tree.Root)
				return nil
			})
		},
	}
}
