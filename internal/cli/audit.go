package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) auditCmd() *cobra.Command {
	return group("audit", "Read the log, sign it, and check that it adds up",
		`  tracon audit list --since 24h
  tracon audit verify`,
		a.auditListCmd(), a.auditVerifyCmd(), a.auditProveCmd(),
		group("receipt", "Check what proves an entry",
			`  tracon audit receipt check receipt`,
			a.receiptCheckCmd()), a.auditCheckpointCmd(), a.auditExportCmd(), a.auditHistoryCmd(),
		a.acceptLossCmd(), a.rotateKeyCmd())
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

// entryFilter chooses entries, for list and export.
type entryFilter struct {
	all          bool
	leaves       bool // with the bytes that are hashed, where they are not there anyway
	from         uint64
	kinds        []string
	run, actor   string
	subject      string
	since, until moment
}

func (f *entryFilter) register(cmd *cobra.Command) {
	var names []string
	for _, k := range audit.Kinds() {
		names = append(names, string(k))
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all-tenants", false, "the entries of all tenants, and the host's own; on a server it takes a key of the platform")
	flags.Uint64Var(&f.from, "from", 0, "begin at the entry of this index")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only entries of these kinds: "+strings.Join(names, ", "))
	flags.StringVar(&f.run, "run", "", "only entries of this call")
	flags.StringVar(&f.actor, "by", "", "only entries of what this actor did or asked for")
	flags.StringVar(&f.subject, "subject", "", "only entries whose subject begins so, such as a skill's name")
	flags.Var(&f.since, "since", "only entries from this time on: 2026-11-29T12:00:00Z, or 24h for the last day")
	flags.Var(&f.until, "until", "only entries before this time")
	_ = cmd.RegisterFlagCompletionFunc("kind", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *entryFilter) check() error {
	for _, k := range f.kinds {
		if !slices.Contains(audit.Kinds(), audit.Kind(k)) {
			return hint(fmt.Errorf("there is no kind of entry %q", k), "`tracon audit list --help` names them")
		}
	}
	return nil
}

func (f *entryFilter) takes(e audit.Entry) bool {
	switch {
	case len(f.kinds) > 0 && !slices.Contains(f.kinds, string(e.Kind)):
	case f.run != "" && e.Run != f.run:
	case f.actor != "" && e.Actor != f.actor:
	case !strings.HasPrefix(e.Subject, f.subject):
	case !f.since.IsZero() && e.Time.Before(f.since.Time):
	case !f.until.IsZero() && !e.Time.Before(f.until.Time):
	default:
		return true
	}
	return false
}

// moment is a time as a flag: RFC 3339, or how long ago.
type moment struct{ time.Time }

func (m *moment) Type() string { return "time" }
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Set(text string) (err error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		m.Time = time.Now().Add(-ago)
		return nil
	}
	if m.Time, err = time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("write a time such as 2026-11-29T12:00:00Z, or how long ago, such as 24h")
	}
	return nil
}

// followInterval is how often --follow looks.
const followInterval = 500 * time.Millisecond

func (a *app) auditListCmd() *cobra.Command {
	var f entryFilter
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entries of the log",
		Long: `Lists the entries of the tenant, the oldest first. Go on behind the last one that
you have seen with --from and its index plus one. With --follow it goes on by
itself as entries come, one a line, until it is stopped.

An entry with a count above one stands for so many: refusals of one call that
come within 30 seconds of another are counted.`,
		Example: `  tracon audit list
  tracon audit list --kind refusal,ending --since 24h
  tracon audit list --run 01991f3a-… --json
  tracon audit list --follow --all-tenants`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.at(cmd, daemon.Read, func(ctx context.Context, b backend) error {
				if follow {
					return a.followLog(ctx, b, f)
				}
				rows := [][]string{{"INDEX", "TIME", "TENANT", "ACTOR", "KIND", "SUBJECT", "WHAT"}}
				list := []entryJSON{}
				for leaf, err := range b.Entries(ctx, f) {
					if err != nil {
						return err
					}
					if !f.takes(leaf.Entry) {
						continue
					}
					if limit > 0 && len(rows)+len(list)-1 == limit {
						a.say("tracon: there are more: --from %d", leaf.Index)
						break
					}
					if a.json {
						list = append(list, toEntryJSON(leaf))
						continue
					}
					rows = append(rows, row(leaf))
				}
				if a.json {
					return a.printJSON(list)
				}
				return a.table(rows)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0: all")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on as entries come; with --json, one JSON value a line")
	apart(cmd, "limit", "follow")
	return cmd
}

func row(leaf audit.Leaf) []string {
	e := leaf.Entry
	return []string{fmt.Sprint(leaf.Index), e.Time.Local().Format(time.DateTime), e.Tenant, e.Actor, string(e.Kind), e.Subject, gist(e)}
}

// followLog writes entries as they come, until ctx ends.
func (a *app) followLog(ctx context.Context, b backend, f entryFilter) error {
	for {
		for leaf, err := range b.Entries(ctx, f) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			f.from = leaf.Index + 1
			if !f.takes(leaf.Entry) {
				continue
			}
			line := []byte(harmless(strings.Join(row(leaf), "  "), false))
			if a.json {
				if line, err = json.Marshal(toEntryJSON(leaf)); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(a.out, "%s\n", line); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}

// gist is what an entry says, in a few words.
func gist(e audit.Entry) string {
	switch e.Kind {
	case audit.Refusal:
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf("%d times since %s: ", e.Count, e.Fact("since"))
		}
		return times + e.Fact("gate") + ": " + e.Fact("reason")
	case audit.Ending:
		parts := []string{e.Fact("ending")}
		for _, name := range []string{"exitCode", "signal", "gate", "reason"} {
			if v := e.Fact(name); v != "" {
				parts = append(parts, name+" "+v)
			}
		}
		if d := e.Fact("duration"); d != "" {
			parts = append(parts, "in "+d)
		}
		return strings.Join(parts, ", ")
	case audit.Admission:
		return e.Fact("digest") + " by grant " + e.Fact("grant")
	case audit.Granted, audit.Revoked:
		return e.Fact("digest") + " " + e.Fact("reason")
	case audit.Keeping:
		return strings.TrimSpace(e.Fact("key") + e.Fact("to") + e.Fact("loss") + e.Fact("what") + " " + e.Fact("reason"))
	}
	return e.Fact("after")
}
