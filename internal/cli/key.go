package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) keyCmd() *cobra.Command {
	var platform bool
	cmd := group("key", "API keys of a tenant, or of the platform, for those who ask through a server",
		`  tracon key create ci --role operator --tenant acme
  tracon key list --tenant acme
  tracon key rotate KEY --tenant acme`,
		a.keyCreateCmd(&platform), a.keyListCmd(&platform), a.keyShowCmd(&platform), a.keyRotateCmd(&platform), a.keyRevokeCmd(&platform))
	cmd.PersistentFlags().BoolVar(&platform, "platform", false, "the platform's keys, instead of the tenant's")
	return cmd
}

// keyJSON is a key as it is shown.
type keyJSON struct {
	access.Key
	State string `json:"state"`
}

func toKeyJSON(k access.Key) keyJSON { return keyJSON{k, state(k)} }

// state is the key's, also of one of a server, which does not tell its hash.
func state(k access.Key) string {
	if k.Hash == (access.Hash{}) {
		k.Hash = access.Hash{1}
	}
	return k.State(time.Now())
}

// showSecret prints a secret alone on standard output, for a script to take, and the
// rest for people.
func (a *app) showSecret(k access.Key, secret string) error {
	if a.json {
		return a.printJSON(struct {
			Key    keyJSON `json:"key"`
			Secret string  `json:"secret"`
		}{toKeyJSON(k), secret})
	}
	fmt.Fprintln(a.out, secret)
	a.say("this is the secret of key %s (%s)%s; keep it now, it is not shown again", k.ID, k.Name, until(k.Expires))
	return nil
}

func whose(b backend, platform bool) string {
	if platform {
		return "the platform"
	}
	return "tenant " + b.Tenant()
}

// hintKey says what to do about an error of a change of keys.
func hintKey(b backend, platform bool, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrQuota):
		return hint(err, "revoke keys that nobody needs, or `tracon tenant set %s --max-keys N`", quoteWords(b.Tenant()))
	case errors.Is(err, grant.ErrNotFound):
		return hint(err, "`tracon key list` lists the keys of %s", whose(b, platform))
	}
	return err
}

func (a *app) keyCreateCmd(platform *bool) *cobra.Command {
	var k admin.Keying
	var roles, scopes []string
	var expires string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a key and print its secret, once",
		Long: `Makes a key for who asks through a server. The secret is printed on standard output,
once: of it a hash alone is kept. A tenant's key sees that tenant alone; the tenant must
have been made with ` + "`tracon tenant create`" + `.

Roles: reader reads; operator also imports and runs; approver reads, and grants; admin
does everything within the tenant. With --platform the key runs the installation and
sees nothing of any tenant's skills or runs. Scopes narrow what the roles give.`,
		Example: `  tracon key create ci --role operator --tenant acme --expires 2160h
  tracon key create dashboards --role reader --scope runs.read,audit.read --tenant acme
  tracon key create root --platform`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Name = args[0]
			for _, r := range roles {
				k.Roles = append(k.Roles, access.Role(r))
			}
			for _, s := range scopes {
				k.Scopes = append(k.Scopes, access.Permission(s))
			}
			if *platform && len(roles) == 0 {
				k.Roles = []access.Role{access.Platform}
			}
			if len(k.Roles) == 0 {
				return usage(cmd, hint(errors.New("--role is missing"), "say what the key may do: --role reader, operator, approver or admin"))
			}
			var err error
			if k.Expires, err = parseExpiry(expires, time.Now()); err != nil {
				return err
			}
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				made, secret, err := b.CreateKey(ctx, *platform, k)
				if errors.Is(err, grant.ErrNotFound) {
					return hint(err, "tracon tenant create %s", quoteWords(b.Tenant()))
				}
				if err != nil {
					return hintKey(b, *platform, err)
				}
				return a.showSecret(made, secret)
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&roles, "role", nil, "what it may do: reader, operator, approver, admin; several with commas")
	f.StringSliceVar(&scopes, "scope", nil, "narrow it to these permissions, such as runs.read,runs.write (default: all that the roles give)")
	f.StringVar(&expires, "expires", "", "when it ends: a duration such as 720h, or a time such as 2027-01-31T00:00:00Z (default: never)")
	complete(cmd, "role", roleNames())
	complete(cmd, "scope", scopeNames())
	return cmd
}

func roleNames() (names []string) {
	for _, r := range access.Roles() {
		if r != access.Platform {
			names = append(names, string(r))
		}
	}
	return names
}

func scopeNames() (names []string) {
	for _, p := range access.Permissions() {
		names = append(names, string(p))
	}
	return names
}

func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it fails for a flag that is not there alone
}

func (a *app) keyListCmd(platform *bool) *cobra.Command {
	var f access.KeyFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys, the newest first, without their secrets",
		Example: `  tracon key list --tenant acme
  tracon key list --platform --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				keys, err := b.Keys(ctx, *platform, f)
				if err != nil {
					return err
				}
				if a.json {
					list := []keyJSON{}
					for _, k := range keys {
						list = append(list, toKeyJSON(k))
					}
					return a.printJSON(list)
				}
				rows := [][]string{{"KEY", "STATE", "NAME", "ROLES", "SCOPES", "USED"}}
				for _, k := range keys {
					rows = append(rows, []string{k.ID, state(k) + until(k.Expires), k.Name, words(k.Roles), orNone(words(k.Scopes)), day(k.Used)})
				}
				return a.table(rows)
			})
		},
	}
	cmd.Flags().IntVar(&f.Limit, "limit", access.DefaultLimit, "at most so many")
	cmd.Flags().StringVar(&f.Before, "before", "", "only keys that came before this one")
	return cmd
}

func words[T ~string](list []T) string {
	var all []string
	for _, w := range list {
		all = append(all, string(w))
	}
	return strings.Join(all, ",")
}

func day(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func (a *app) keyShowCmd(platform *bool) *cobra.Command {
	return &cobra.Command{
		Use:               "show KEY",
		Short:             "Show a key, without its secret",
		Example:           `  tracon key show mfrggzdfmztwq2lk --tenant acme`,
		Args:              exactly("KEY"),
		ValidArgsFunction: a.completeKey(platform),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				k, err := b.Key(ctx, *platform, args[0])
				if err != nil {
					return hintKey(b, *platform, err)
				}
				return a.showKey(b, *platform, k)
			})
		},
	}
}

func (a *app) showKey(b backend, platform bool, k access.Key) error {
	if a.json {
		return a.printJSON(toKeyJSON(k))
	}
	rows := [][]string{{"key", k.ID}, {"of", whose(b, platform)}, {"name", k.Name}, {"state", state(k) + until(k.Expires)}, {"roles", words(k.Roles)},
		{"scopes", orNone(words(k.Scopes))}, {"created", day(k.Created) + " by " + k.CreatedBy}, {"used", day(k.Used)}}
	if k.ReplacedBy != "" {
		rows = append(rows, []string{"replaced by", k.ReplacedBy})
	}
	if !k.Revoked.IsZero() {
		rows = append(rows, []string{"revoked", day(k.Revoked) + " by " + k.RevokedBy})
	}
	return a.pairs(rows)
}

func (a *app) keyRotateCmd(platform *bool) *cobra.Command {
	var r admin.Rotation
	var expires string
	cmd := &cobra.Command{
		Use:   "rotate KEY",
		Short: "Make a key in the place of another, which ends after an overlap",
		Long: `Makes a key with the name, roles and scopes of another and prints its secret, once. The
old one lets in for the overlap still, so that both may be in use meanwhile; with
--overlap 0 it ends now. Without --expires the new one lives as long as the old one was to.`,
		Example: `  tracon key rotate mfrggzdfmztwq2lk --tenant acme
  tracon key rotate mfrggzdfmztwq2lk --tenant acme --overlap 0`,
		Args:              exactly("KEY"),
		ValidArgsFunction: a.completeKey(platform),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.ID = args[0]
			if r.Expires, err = parseExpiry(expires, time.Now()); err != nil {
				return err
			}
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				made, secret, err := b.RotateKey(ctx, *platform, r)
				if err != nil {
					return hintKey(b, *platform, err)
				}
				return a.showSecret(made, secret)
			})
		},
	}
	cmd.Flags().DurationVar(&r.Overlap, "overlap", admin.DefaultOverlap, "how long the old one lets in still, at most 720h")
	cmd.Flags().StringVar(&expires, "expires", "", "when the new one ends: a duration such as 720h, or a time")
	return cmd
}

func (a *app) keyRevokeCmd(platform *bool) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "revoke KEY",
		Short:             "Take a key back: from now on it lets nobody in",
		Example:           `  tracon key revoke mfrggzdfmztwq2lk --tenant acme --reason "it stood in a log"`,
		Args:              exactly("KEY"),
		ValidArgsFunction: a.completeKey(platform),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				k, err := b.RevokeKey(ctx, *platform, args[0], reason)
				if err != nil {
					return hintKey(b, *platform, err)
				}
				if a.json {
					return a.printJSON(toKeyJSON(k))
				}
				fmt.Fprintf(a.out, "revoked key %s (%s) of %s\n", k.ID, harmless(k.Name, false), whose(b, *platform))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	return cmd
}

// completeKey completes KEY with those in force.
func (a *app) completeKey(platform *bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			a.quietly(cmd, nil, func(ctx context.Context, b backend) {
				keys, _ := b.Keys(ctx, *platform, access.KeyFilter{Limit: 100})
				for _, k := range keys {
					if k.InForce(time.Now()) {
						found = append(found, k.ID+"\t"+k.Name)
					}
				}
			})
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
