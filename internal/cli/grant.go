package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/textdiff"
	"github.com/tracon-go/tracon/skill"
)

func (a *app) grantCmd() *cobra.Command {
	return group("grant", "Review, grant and revoke what a tenant may run",
		`  tracon grant review unit-converter scripts/convert.py
  tracon grant list`,
		a.grantReviewCmd(), a.grantDiffCmd(), a.grantAddCmd(), a.grantListCmd(), a.grantRevokeCmd())
}

// refArgs takes SKILL and SCRIPT, or SKILL alone with --all-scripts.
func refArgs(all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *all {
			return exactly("SKILL")(cmd, args)
		}
		if err := exactly("SKILL", "SCRIPT")(cmd, args); err != nil {
			return hint(err, "name one script, or say --all-scripts")
		}
		return nil
	}
}

func (a *app) ref(ctx context.Context, b backend, args []string, all bool) (grant.Ref, error) {
	name, err := b.SkillName(ctx, args[0])
	if err != nil {
		return grant.Ref{}, err
	}
	ref := grant.Ref{Tenant: b.Tenant(), Skill: name, AllScripts: all}
	if !all {
		ref.Script = args[1]
	}
	return ref, ref.Validate()
}

const allScriptsHelp = "every script of the skill, instead of one"

func (a *app) grantReviewCmd() *cobra.Command {
	var all, full bool
	cmd := &cobra.Command{
		Use:   "review SKILL [SCRIPT]",
		Short: "Show what a grant would cover, its digest, and what has changed",
		Long: `Shows every file that the script could see, the digest that a grant of it pins,
and the difference to what was granted before. The command at the end grants
exactly what was shown: if a byte changes in between, it is refused.`,
		Example:           `  tracon grant review unit-converter scripts/convert.py --full`,
		Args:              refArgs(&all),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atSkill(cmd, daemon.List, args[:1], func(ctx context.Context, b backend) error {
				ref, err := a.ref(ctx, b, args, all)
				if err != nil {
					return err
				}
				r, err := b.Review(ctx, ref, full)
				if err != nil {
					return err
				}
				return a.showReview(r, args, full)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all-scripts", false, allScriptsHelp)
	cmd.Flags().BoolVar(&full, "full", false, "show the text of every file")
	return cmd
}

type fileJSON struct {
	Path   string        `json:"path"`
	Size   int           `json:"size"`
	Digest bundle.Digest `json:"digest"`
	Text   *string       `json:"text,omitempty"`
}

type changeJSON struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // added, removed or changed
	Difference string `json:"difference"`
}

type reviewJSON struct {
	Ref     grant.Ref     `json:"ref"`
	Digest  bundle.Digest `json:"digest"`
	Files   []fileJSON    `json:"files"`
	Granted *grant.Grant  `json:"granted"`
	State   string        `json:"state,omitempty"` // of the grant
	Changes []changeJSON  `json:"changes"`
	// Signs of risk, as information for who reviews.
	Risks []skill.Diagnostic `json:"risks"`
}

// risks are what a reviewer should look at.
func risks(r admin.Review) []skill.Diagnostic {
	list := []skill.Diagnostic{}
	s, err := skill.FromBundle(r.Ref.Skill, r.Content)
	if err != nil {
		return list // the gate content says so
	}
	for _, d := range skill.Lint(s) {
		if d.Risk() {
			list = append(list, d)
		}
	}
	return list
}

func (a *app) showReview(r reviewJSON, args []string, full bool) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s, tenant %s\n", harmless(r.Ref.String(), false), r.Ref.Tenant)
	if err := a.table(fileRows(r.Files)); err != nil {
		return err
	}
	for _, f := range r.Files {
		if f.Text != nil {
			fmt.Fprintf(a.out, "\n── %s\n", harmless(f.Path, false))
			io.WriteString(a.out, lined(harmless(*f.Text, true)))
		}
	}
	for i, d := range r.Risks {
		if i == 0 {
			fmt.Fprintln(a.out, "\nlook at:")
		}
		if i == 20 && !full {
			fmt.Fprintf(a.out, "  … and %d more; --full shows them\n", len(r.Risks)-i)
			break
		}
		fmt.Fprintf(a.out, "  %s\n", d)
	}
	fmt.Fprintf(a.out, "\n%s\ndigest %s\n", sizesOf(r.Files), r.Digest)
	replace := ""
	switch {
	case r.Granted == nil:
		fmt.Fprintln(a.out, "never granted")
	case len(r.Changes) == 0:
		fmt.Fprintf(a.out, "the same as grant %s, which is %s\n", r.Granted.ID, r.State)
	default:
		fmt.Fprintf(a.out, "changed since grant %s, which is %s:\n", r.Granted.ID, r.State)
		a.printChanges(a.out, r.Changes, 0)
		if r.Granted.Ref == r.Ref && r.Granted.InForce(time.Now()) {
			replace = " --replace"
		}
	}
	words := args
	if r.Ref.AllScripts {
		words = append(words, "--all-scripts")
	}
	fmt.Fprintf(a.out, "\nto grant exactly this:\n  tracon grant add %s%s --digest %s\n", quoteWords(append([]string{}, words...)...), replace, r.Digest)
	return nil
}

func toChangesJSON(changes []bundle.Change) []changeJSON {
	list := []changeJSON{}
	for _, c := range changes {
		list = append(list, toChangeJSON(c))
	}
	return list
}

func toChangeJSON(c bundle.Change) changeJSON {
	return changeJSON{c.Path, c.Kind(), textdiff.Unified(c.Path, c.Old, c.New)}
}

// printChanges shows differences: at most so many lines, all for zero.
func (a *app) printChanges(w io.Writer, changes []changeJSON, most int) {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Kind+" "+c.Path)
		for line := range strings.Lines(c.Difference) {
			lines = append(lines, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	for i, line := range lines {
		if most > 0 && i == most {
			fmt.Fprintf(w, "  … %d more lines; `tracon grant diff` shows them\n", len(lines)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", harmless(line, false))
	}
}

func lined(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func (a *app) grantDiffCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               "diff SKILL [SCRIPT]",
		Example:           `  tracon grant diff unit-converter scripts/convert.py`,
		Short:             "Show what has changed since the grant",
		Long:              `Shows the difference from what was granted to what is there now. Exits 0 when nothing has changed, else 1.`,
		Args:              refArgs(&all),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atSkill(cmd, daemon.List, args[:1], func(ctx context.Context, b backend) error {
				ref, err := a.ref(ctx, b, args, all)
				if err != nil {
					return err
				}
				granted, changes, err := b.Difference(ctx, ref)
				if err != nil {
					return err
				}
				if granted.ID == "" {
					return hint(fmt.Errorf("%w: %s was never granted to tenant %s", grant.ErrNotFound, ref, ref.Tenant), "tracon grant review %s", quoteWords(args...))
				}
				var exit error
				if len(changes) > 0 {
					exit = &exitWith{exitError, nil}
				}
				if a.json {
					return errors.Join(a.printJSON(struct {
						Granted grant.Grant  `json:"granted"`
						Changes []changeJSON `json:"changes"`
					}{granted, changes}), exit)
				}
				if len(changes) == 0 {
					fmt.Fprintf(a.out, "nothing has changed since grant %s\n", granted.ID)
				}
				a.printChanges(a.out, changes, 0)
				return exit
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all-scripts", false, allScriptsHelp)
	return cmd
}

func (a *app) grantAddCmd() *cobra.Command {
	var all, replace bool
	var digest, reason, expires, tier string
	cmd := &cobra.Command{
		Use:   "add SKILL [SCRIPT]",
		Short: "Let the tenant run a script while its content stays what was reviewed",
		Long: `Grants what --digest names: the content that was reviewed. If a byte has changed
since, nothing is granted, and the new digest is not told: review it again.

Without --digest it shows the content and asks, where there is a terminal.

A grant switches nothing on. Where the host, the tenant or a list of interpreters
still refuses the script, that is said on standard error, with what opens it.`,
		Example: `  tracon grant add unit-converter scripts/convert.py --digest sha256:…
  tracon grant add sales-report --all-scripts --expires 720h --reason "month end" --digest sha256:…`,
		Args:              refArgs(&all),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			g := admin.Granting{MinTier: grant.Tier(tier), Reason: reason, Replace: replace}
			var err error
			if g.Expires, err = parseExpiry(expires, time.Now()); err != nil {
				return err
			}
			if digest != "" {
				if g.Digest, err = bundle.ParseDigest(digest); err != nil {
					return err
				}
			}
			return a.atSkill(cmd, daemon.Make, args[:1], func(ctx context.Context, b backend) error {
				if g.Ref, err = a.ref(ctx, b, args, all); err != nil {
					return err
				}
				g.Source = source(args[0])
				if g.Digest.IsZero() {
					if g.Digest, err = a.reviewed(ctx, b, g.Ref, args); err != nil {
						return err
					}
				}
				made, err := b.Grant(ctx, g)
				switch {
				case errors.Is(err, admin.ErrPinned):
					return hint(err, "look at `tracon grant diff %s`, then say --replace", quoteWords(args...))
				case errors.Is(err, admin.ErrChanged):
					return hint(err, "review it again: tracon grant review %s", quoteWords(args...))
				case err != nil:
					return err
				}
				defer a.sayShut(ctx, b, []grant.Grant{made})
				if a.json {
					return a.printJSON(made)
				}
				fmt.Fprintf(a.out, "granted %s to tenant %s: %s, tier %s%s (grant %s)\n", harmless(made.Ref.String(), false), made.Ref.Tenant, made.Pin, made.MinTier, until(made.Expires), made.ID)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&all, "all-scripts", false, allScriptsHelp)
	f.BoolVar(&replace, "replace", false, "replace a grant in force that pins other content")
	f.StringVar(&digest, "digest", "", "digest that was reviewed, sha256:…")
	f.StringVar(&reason, "reason", "", "why, for the log")
	f.StringVar(&expires, "expires", "", "when it ends: a duration such as 720h, or a time such as 2027-01-31T00:00:00Z (default: never)")
	f.StringVar(&tier, "tier", "", "least tier that may run it: process, sandbox, kernel, vm (default: the tier in force here)")
	return cmd
}

// reviewed shows the content to a person and returns its digest after a yes.
func (a *app) reviewed(ctx context.Context, b backend, ref grant.Ref, args []string) (bundle.Digest, error) {
	if !a.inTTY || a.json {
		return bundle.Digest{}, hint(errors.New("--digest is missing: name what was reviewed"), "tracon grant review %s", quoteWords(append([]string{}, args...)...))
	}
	r, err := b.Review(ctx, ref, false)
	if err != nil {
		return bundle.Digest{}, err
	}
	if err := a.showReview(r, args, false); err != nil {
		return bundle.Digest{}, err
	}
	ok, err := a.ask(ctx, "Grant this?")
	if err == nil && !ok {
		err = errors.New("nothing was granted")
	}
	return r.Digest, err
}

func parseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("--expires %q: write a duration such as 720h, or a time such as 2027-01-31T00:00:00Z", s)
	}
	return t, nil
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + t.Local().Format(time.DateTime)
}

func (a *app) grantListCmd() *cobra.Command {
	var f grant.Filter
	cmd := &cobra.Command{
		Use:     "list",
		Example: `  tracon grant list --skill unit-converter --json`,
		Short:   "List the tenant's grants, the newest first",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				grants, err := b.Grants(ctx, f)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(grants)
				}
				rows := [][]string{{"GRANT", "STATE", "FOR", "PIN", "TIER", "BY", "GRANTED"}}
				for _, g := range grants {
					rows = append(rows, []string{g.ID, g.State + until(g.Expires), g.Ref.String(), g.Pin.Hex()[:16], string(g.MinTier), g.GrantedBy, g.Granted.Local().Format(time.DateTime)})
				}
				return a.table(rows)
			})
		},
	}
	cmd.Flags().StringVar(&f.Skill, "skill", "", "only grants of this skill")
	cmd.Flags().IntVar(&f.Limit, "limit", 1000, "at most so many")
	return cmd
}

func (a *app) grantRevokeCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "revoke GRANT",
		Example:           `  tracon grant revoke 01a22916-5047-754c-a012-41f2e246c41c --reason "no longer needed"`,
		Short:             "Take a grant back",
		Long:              `Takes a grant back. A call that waits for a slot is refused too; a script that runs goes on.`,
		Args:              exactly("GRANT"),
		ValidArgsFunction: a.completeGrant,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				g, err := b.Revoke(ctx, args[0], reason)
				if err != nil {
					return hint(err, "`tracon grant list` lists the grants of tenant %s", b.Tenant())
				}
				if a.json {
					return a.printJSON(g)
				}
				fmt.Fprintf(a.out, "revoked grant %s for %s\n", g.ID, harmless(g.Ref.String(), false))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	return cmd
}
