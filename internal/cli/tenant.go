package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) tenantCmd() *cobra.Command {
	return group("tenant", "Tenants that may have keys: their switch, quotas and rates",
		`  tracon tenant create acme
  tracon tenant set acme --max-skills 50
  tracon tenant show acme`,
		a.tenantCreateCmd(), a.tenantListCmd(), a.tenantShowCmd(), a.tenantSetCmd(), a.tenantDeleteCmd())
}

// tenantFlags are the fields of a tenant that flags change. One that is not given
// leaves its field alone.
type tenantFlags struct {
	off, on       bool
	quota         access.Quota
	bytes         string
	rates         access.Rates
	changed       func(string) bool
	withoutSwitch bool
}

func (t *tenantFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	if !t.withoutSwitch {
		f.BoolVar(&t.off, "off", false, "let no credential of it in, and run nothing of it")
		f.BoolVar(&t.on, "on", false, "take --off back")
		apart(cmd, "off", "on")
	}
	f.IntVar(&t.quota.Skills, "max-skills", 0, fmt.Sprintf("imported skills that are there; 0: the host's, by default %d", access.DefaultSkills))
	f.StringVar(&t.bytes, "max-bytes", "", "size of all contents, each once, such as 10GiB; 0: the host's, by default "+config.FormatSize(access.DefaultBytes))
	f.IntVar(&t.quota.Grants, "max-grants", 0, fmt.Sprintf("grants that are not revoked; 0: the host's, by default %d", access.DefaultGrants))
	f.IntVar(&t.quota.Keys, "max-keys", 0, fmt.Sprintf("keys in force; 0: the host's, by default %d", access.DefaultKeys))
	f.Float64Var(&t.rates.Requests, "rate", 0, "requests a second of its keys together; 0: the host's")
	f.IntVar(&t.rates.Burst, "burst", 0, "requests at once; 0: the host's")
	f.Float64Var(&t.rates.Runs, "run-rate", 0, "runs a second that are started; 0: the host's")
	f.IntVar(&t.rates.RunBurst, "run-burst", 0, "runs at once that are started; 0: the host's")
	t.changed = f.Changed
}

func (t *tenantFlags) apply(to *access.Tenant) error {
	if t.changed("off") || t.changed("on") {
		to.Off = t.off || t.changed("on") && !t.on
	}
	if t.changed("max-bytes") {
		n, err := config.ParseSize(t.bytes)
		if err != nil {
			return fmt.Errorf("--max-bytes: %w", err)
		}
		to.Quota.Bytes = n
	}
	for flag, set := range map[string]func(){
		"max-skills": func() { to.Quota.Skills = t.quota.Skills },
		"max-grants": func() { to.Quota.Grants = t.quota.Grants },
		"max-keys":   func() { to.Quota.Keys = t.quota.Keys },
		"rate":       func() { to.Rates.Requests = t.rates.Requests },
		"burst":      func() { to.Rates.Burst = t.rates.Burst },
		"run-rate":   func() { to.Rates.Runs = t.rates.Runs },
		"run-burst":  func() { to.Rates.RunBurst = t.rates.RunBurst },
	} {
		if t.changed(flag) {
			set()
		}
	}
	return nil
}

func (a *app) tenantCreateCmd() *cobra.Command {
	t := tenantFlags{withoutSwitch: true}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a tenant, so that it can have keys",
		Long: `Makes a tenant. One that nobody made has no key, so it asks for nothing through a
server; on this machine every tenant works without. What it may run is its policy's
and its grants' to say.`,
		Example: `  tracon tenant create acme
  tracon tenant create acme --max-skills 50 --max-bytes 1GiB`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			made := access.Tenant{Name: args[0]}
			if err := t.apply(&made); err != nil {
				return err
			}
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				made, err := b.CreateTenant(ctx, made)
				if errors.Is(err, admin.ErrDeleted) {
					return hint(err, "take another name: who came later would be taken for the tenant of before")
				}
				if errors.Is(err, grant.ErrConflict) {
					return hint(fmt.Errorf("%w: there is a tenant %q", grant.ErrConflict, args[0]), "`tracon tenant set %s` changes it", quoteWords(args[0]))
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(tenantJSON{Tenant: made, State: onOff(made)})
				}
				fmt.Fprintf(a.out, "made the tenant %s\n", harmless(made.Name, false))
				a.say("it has no key: `tracon key create NAME --role ROLE --tenant %s`", quoteWords(made.Name))
				return nil
			})
		},
	}
	t.add(cmd)
	return cmd
}

func (a *app) tenantListCmd() *cobra.Command {
	var f access.TenantFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tenants that somebody made, by name",
		Example: `  tracon tenant list --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				list, err := b.Tenants(ctx, f)
				if err != nil {
					return err
				}
				if a.json {
					all := []tenantJSON{}
					for _, t := range list {
						all = append(all, tenantJSON{Tenant: t, State: onOff(t)})
					}
					return a.printJSON(all)
				}
				rows := [][]string{{"TENANT", "STATE", "MADE", "BY"}}
				for _, t := range list {
					rows = append(rows, []string{t.Name, onOff(t), t.Created.Local().Format(time.DateTime), t.By})
				}
				return a.table(rows)
			})
		},
	}
	cmd.Flags().IntVar(&f.Limit, "limit", access.DefaultLimit, "at most so many")
	cmd.Flags().StringVar(&f.After, "after", "", "only names behind this one")
	return cmd
}

func onOff(t access.Tenant) string {
	switch {
	case !t.Deleted.IsZero():
		return "deleted"
	case t.Off:
		return "off"
	}
	return "on"
}

// tenantJSON is a tenant as it is shown, with what is kept for it.
type tenantJSON struct {
	access.Tenant
	State  string        `json:"state"`            // on, off or deleted
	Usage  *access.Usage `json:"usage,omitempty"`  // nil: a server that does not tell
	Bounds *access.Quota `json:"bounds,omitempty"` // its quota, with the host's and the defaults; as Usage
}

func (a *app) tenantShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a tenant, what is kept for it, and what may be",
		Example:           `  tracon tenant show acme`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				t, err := b.ShowTenant(ctx, args[0])
				if err != nil {
					return hintTenant(err)
				}
				return a.showTenant(t)
			})
		},
	}
}

func hintTenant(err error) error {
	if errors.Is(err, grant.ErrNotFound) {
		return hint(err, "`tracon tenant list` lists those that somebody made")
	}
	return err
}

func (a *app) showTenant(t tenantJSON) error {
	if t.State = onOff(t.Tenant); a.json {
		return a.printJSON(t)
	}
	rows := [][]string{{"tenant", t.Name}, {"state", t.State}, {"made", day(t.Created) + " by " + t.By}}
	if !t.Deleted.IsZero() {
		return a.pairs(append(rows, []string{"deleted", day(t.Deleted)}))
	}
	if u, b := t.Usage, t.Bounds; u != nil && b != nil {
		of := func(used, most int) string { return fmt.Sprintf("%d of %d", used, most) }
		rows = append(rows, []string{"skills", of(u.Skills, b.Skills)}, []string{"bytes", config.FormatSize(u.Bytes) + " of " + config.FormatSize(b.Bytes)},
			[]string{"grants", of(u.Grants, b.Grants)}, []string{"keys", of(u.Keys, b.Keys)})
	} else {
		q := t.Quota
		rows = append(rows, []string{"max-skills", most(q.Skills)}, []string{"max-bytes", most(q.Bytes)}, []string{"max-grants", most(q.Grants)}, []string{"max-keys", most(q.Keys)})
	}
	return a.pairs(append(rows, []string{"rate", rate(t.Rates.Requests, t.Rates.Burst)}, []string{"run-rate", rate(t.Rates.Runs, t.Rates.RunBurst)}))
}

func most[T int | int64](n T) string {
	if n == 0 {
		return "the host's"
	}
	return fmt.Sprint(n)
}

func rate(r float64, burst int) string {
	if r == 0 && burst == 0 {
		return "the host's"
	}
	number := func(n float64) string {
		if n == 0 {
			return "the host's"
		}
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return number(r) + " a second, burst " + number(float64(burst))
}

func (a *app) tenantSetCmd() *cobra.Command {
	var t tenantFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a tenant's switch, quotas or rates",
		Long: `Changes what the flags name and leaves the rest. With --off no credential of the
tenant is let in and no script of it runs, whatever its policy says; what runs goes on,
and what waits for a slot is refused. Its data stays. A quota below what is kept takes
nothing away: it keeps more from coming.`,
		Example: `  tracon tenant set acme --off
  tracon tenant set acme --on --max-keys 20 --rate 50 --burst 100`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				if _, err := b.SetTenant(ctx, args[0], t.apply); err != nil {
					return hintTenant(err)
				}
				shown, err := b.ShowTenant(ctx, args[0])
				if err != nil {
					return err
				}
				return a.showTenant(shown)
			})
		},
	}
	t.add(cmd)
	return cmd
}

// completeTenant completes NAME with the tenants that somebody made.
func (a *app) completeTenant(cmd *cobra.Command, args []string, _ string) (found []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		a.quietly(cmd, nil, func(ctx context.Context, b backend) {
			list, _ := b.Tenants(ctx, access.TenantFilter{})
			for _, t := range list {
				found = append(found, t.Name)
			}
		})
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
