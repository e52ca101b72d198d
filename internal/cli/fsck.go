package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/internal/daemon"
)

// maxFindings is how many findings --json holds; the report counts all.
const maxFindings = 10_000

func (a *app) fsckCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "fsck",
		Annotations: map[string]string{ownEyes: "yes"},
		Example: `  tracon fsck
  tracon fsck --json
  tracon fsck --data /mnt/copy/tracon`,
		Short: "Check that everything that is kept agrees with the log",
		Long: `Reads everything that is kept, of every tenant, and compares it with the log: that
the log adds up; that each grant, revocation, import, policy and record of a call
has its entry, and the reverse; that each admitted call has one ending, or a
process that lives works on it; that every content and every runtime that is here
has its digest; that no dead process left anything behind; and that the database
finds nothing amiss in itself. It repairs nothing, and names each finding with what
to do.

Other processes may go on meanwhile: it looks at one moment. It changes nothing: a
copy that may not be written can be checked too, and one of an older version is
left as it is, and told.

With --server the server looks, which takes a key of the platform; it tells the first
500 findings, and counts all. Ctrl-C ends its work too. Where a server holds the data
folder of this machine, this looks at the folder itself.

Exit codes: 0 nothing was found; 1 it could not look; 3 something was found.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.Verify, a.fsck)
		},
	}
}

func (a *app) fsck(ctx context.Context, b backend) error {
	findings := []fsck.Finding{}
	bar, doing := a.progress(""), ""
	report, err := b.Fsck(ctx, func(what string, done uint64) {
		if what != doing {
			bar.done()
			bar, doing = a.progress(what), what
		}
		bar.show(done)
	}, func(f fsck.Finding) {
		if !a.json {
			bar.done()
			a.tellFinding(f)
		} else if len(findings) < maxFindings {
			findings = append(findings, f)
		}
	})
	bar.done()
	if err != nil {
		return err
	}
	if a.json {
		err := a.printJSON(struct {
			OK       bool           `json:"ok"`
			Report   fsck.Report    `json:"report"`
			Findings []fsck.Finding `json:"findings"` // the first 10,000
		}{report.Findings == 0, report, findings})
		if err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "%d entries, %d tenants, %d grants, %d versions of skills, %d records of calls, %d contents, %d keys; %d calls under way\n",
			report.Entries, report.Tenants, report.Grants, report.Versions, report.Records, report.Contents, report.Keys, report.Running)
		if report.Findings == 0 {
			fmt.Fprintln(a.out, "ok: nothing is amiss")
		}
	}
	if report.Findings > 0 {
		return &exitWith{exitFindings, nil}
	}
	return nil
}

func (a *app) tellFinding(f fsck.Finding) {
	where := f.Invariant
	if f.Tenant != "" {
		where += ", tenant " + f.Tenant
	}
	if f.Entry != nil {
		where += fmt.Sprintf(", entry %d", *f.Entry)
	}
	fmt.Fprintf(a.out, "%s %s\n  %s\n", a.paint(a.out, red, where+":"), harmless(f.What, true), harmless(f.Remedy, true))
}
