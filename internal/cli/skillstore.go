package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/spool"
	"github.com/tracon-go/tracon/skill"
)

// storedFlags are the words of a single stored script.
type storedFlags struct{ name, arguments, schema, description string }

func (a *app) skillImportCmd() *cobra.Command {
	var reason string
	var stored storedFlags
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Keep a skill for the tenant: a folder, a zip file or a single script",
		Long: `Keeps the content in the store as the newest version of the tenant's skill, and the
versions before it in its history. It grants nothing. An archive (.zip or .skill) is bounded before
it is unpacked and refused whole when an entry leaves the folder, is a link, or
stands twice. The files are read once, one by one, and wait in the data folder
until the store has them: it needs room for the skill twice, and memory follows the
largest file.

A single script becomes a skill of its own: --name names it; it takes its arguments
on standard input unless --arguments says otherwise.`,
		Example: `  tracon skill import ./sales-report
  tracon skill import sales-report.zip --reason "month end"
  tracon skill import total.py --name totals --schema total.schema.json`,
		Args: exactly("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				aside := b.Spool()
				defer aside.Close()
				stop := a.progress("reading " + harmless(args[0], false)).during()
				i, diagnostics, err := a.readSource(b.Limits(), aside, args[0], stored)
				stop()
				if err != nil {
					return err
				}
				a.sayDiagnostics("", diagnostics)
				i.Reason = reason
				if i.Source, err = filepath.Abs(args[0]); err != nil {
					return err
				}
				stop = a.progress("importing " + harmless(i.Skill, false)).during()
				v, err := b.Import(ctx, i)
				stop()
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(v)
				}
				fmt.Fprintf(a.out, "imported %s for tenant %s: %s, %s (version %s)\n", harmless(v.Skill, false), v.Tenant, sizes(i.Content), v.Digest, v.ID)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why, for the log")
	f.StringVar(&stored.name, "name", "", "of a single script: the skill's name")
	f.StringVar(&stored.arguments, "arguments", "stdin", "of a single script: stdin, argv, flags or none")
	f.StringVar(&stored.schema, "schema", "", "of a single script: file with the JSON Schema of its arguments")
	f.StringVar(&stored.description, "description", "", "of a single script: what it does")
	return cmd
}

// readSource reads what is to be imported: a folder, a zip file, or a script. The
// files of the former two go to aside, one by one.
func (a *app) readSource(limits bundle.Limits, aside skill.Keeper, source string, stored storedFlags) (admin.Importing, []skill.Diagnostic, error) {
	info, err := os.Stat(source)
	if err != nil {
		return admin.Importing{}, nil, hint(err, "name a folder that holds a SKILL.md, a zip file of one, or a single script")
	}
	switch {
	case info.IsDir():
		return importing(skill.ReadInto(source, limits, aside))
	case isZip(source):
		return importing(readZip(source, limits, aside))
	case stored.name == "":
		return admin.Importing{}, nil, hint(fmt.Errorf("%s is neither a folder nor a zip file (.zip or .skill)", source), "for a single script name the skill that it becomes: --name NAME")
	}
	content, err := a.readAll(source, int(limits.FileBytes))
	if err != nil {
		return admin.Importing{}, nil, err
	}
	d := gate.Declaration{Mode: gate.Mode(stored.arguments), Description: stored.description}
	if stored.schema != "" {
		if d.Schema, err = a.readAll(stored.schema, skill.MaxDeclaration); err != nil {
			return admin.Importing{}, nil, err
		}
	}
	b, err := skill.Stored(filepath.Base(source), content, d)
	return admin.Importing{Skill: stored.name, Content: b, Stored: true}, nil, err
}

// isZip reports whether the file of that name is a zip archive of a skill, which some
// programs that pack skills call .skill.
func isZip(name string) bool {
	ext := filepath.Ext(name)
	return strings.EqualFold(ext, ".zip") || strings.EqualFold(ext, ".skill")
}

// importing refuses a skill that could not run: it is not kept, so that nothing
// is granted unseen.
func importing(o skill.Outline, c bundle.Content, err error) (admin.Importing, []skill.Diagnostic, error) {
	if err == nil && len(o.Errors()) > 0 {
		err = &skill.BrokenError{Folder: o.Folder, Diagnostics: o.Errors()}
	}
	return admin.Importing{Skill: o.Name, Content: c}, o.Diagnostics, err
}

func readZip(path string, limits bundle.Limits, aside skill.Keeper) (skill.Outline, bundle.Content, error) {
	f, err := os.Open(path)
	if err != nil {
		return skill.Outline{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return skill.Outline{}, nil, err
	}
	o, c, err := skill.ReadZipInto(f, info.Size(), limits, aside)
	if _, ok := errors.AsType[*skill.ArchiveError](err); ok {
		err = hint(fmt.Errorf("%s: %w", path, err), "make a zip file of the skill's folder, or name the folder itself")
	}
	return o, c, err
}

// content returns the content that word names, and what to call it: a folder, a
// zip file, or an imported skill as NAME or NAME@VERSION, where VERSION is the
// beginning of an id or of a digest's hex digits. The files of the former two are
// put aside, one by one.
func (a *app) content(ctx context.Context, b backend, aside *spool.Spool, word string) (bundle.Content, string, error) {
	if info, err := os.Stat(word); err == nil && (info.IsDir() || isZip(word)) {
		i, _, err := a.readSource(b.Limits(), aside, word, storedFlags{})
		return i.Content, word, err
	}
	name, which, _ := strings.Cut(word, "@")
	versions, err := b.Versions(ctx, name)
	if err != nil {
		return nil, "", err
	}
	for _, v := range versions {
		if v.Deleted || !strings.HasPrefix(v.ID, which) && !strings.HasPrefix(v.Digest.Hex(), which) {
			continue
		}
		c, err := b.Content(ctx, aside, v)
		return c, name + "@" + v.ID, err
	}
	if c, ok, err := b.InFolder(aside, word); ok || err != nil {
		return c, word, err
	}
	return nil, "", hint(fmt.Errorf("%w: %q is no folder, no zip file, and no skill of tenant %s", grant.ErrNotFound, word, b.Tenant()),
		"`tracon skill list` lists the imported ones, `tracon skill history NAME` their versions")
}

func (a *app) skillExportCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "export SKILL DESTINATION",
		Short: "Write a skill into a new folder or a zip file",
		Long: `Writes the files of a skill into a folder, which must be new or empty, or into a zip
file, where DESTINATION ends in .zip or .skill. The same content makes the same zip file, and
what is imported from it has the same digest.`,
		Example: `  tracon skill export sales-report sales-report.zip
  tracon skill export sales-report@01a2 old-report`,
		Args: exactly("SKILL", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				aside := b.Spool()
				defer aside.Close()
				stop := a.progress("exporting " + harmless(args[0], false)).during()
				defer func() { stop() }()
				c, label, err := a.content(ctx, b, aside, args[0])
				if err != nil {
					return err
				}
				if isZip(args[1]) {
					err = writeZip(args[1], c)
				} else {
					err = skill.WriteFolder(args[1], c)
				}
				if err != nil {
					return err
				}
				stop()
				stop = func() {}
				if a.json {
					return a.printJSON(exportJSON{label, args[1], c.Listing().Digest(), filesOf(c)})
				}
				fmt.Fprintf(a.out, "exported %s: %s, %s\n", harmless(label, false), sizes(c), c.Listing().Digest())
				return nil
			})
		},
	}
}

// exportJSON is what was written, and where.
type exportJSON struct {
	Name   string        `json:"name"`
	To     string        `json:"to"`
	Digest bundle.Digest `json:"digest"`
	Files  []fileJSON    `json:"files"`
}

// filesOf lists the files of c.
func filesOf(c bundle.Content) []fileJSON {
	files := []fileJSON{}
	for _, e := range c.Listing().Entries() {
		files = append(files, fileJSON{Path: e.Path, Size: int(e.Size), Digest: e.Digest})
	}
	return files
}

// writeZip writes a new file, whole or not at all.
func writeZip(path string, c bundle.Content) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return hint(err, "name a new file")
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	return skill.WriteZip(io.Writer(f), c)
}

func (a *app) skillHistoryCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "history SKILL",
		Example: `  tracon skill history sales-report`,
		Short:   "List the versions of an imported skill, the newest first",
		Args:    exactly("SKILL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				versions, err := b.Versions(ctx, args[0])
				if err != nil {
					return err
				}
				if len(versions) == 0 {
					return hint(fmt.Errorf("%w: tenant %s never had an imported skill %q", grant.ErrNotFound, b.Tenant(), args[0]), "tracon skill import SOURCE")
				}
				if a.json {
					return a.printJSON(versions)
				}
				rows := [][]string{{"VERSION", "IMPORTED", "BY", "DIGEST", "REASON"}}
				for _, v := range versions {
					digest := v.Digest.Hex()[:16]
					if v.Deleted {
						digest = "deleted"
					}
					rows = append(rows, []string{v.ID, v.Imported.Local().Format(time.DateTime), v.By, digest, v.Reason})
				}
				return a.table(rows)
			})
		},
	}
}

func (a *app) skillDiffCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Show the difference between two contents",
		Long: `Shows the difference between two contents: folders, zip files, or imported skills as
NAME or NAME@VERSION. With one imported skill it compares its newest version with
the one before. Exits 0 when they are the same, else 1.`,
		Example: `  tracon skill diff sales-report ./sales-report
  tracon skill diff sales-report`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return exactly("OLD", "NEW")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				if len(args) == 1 {
					versions, err := b.Versions(ctx, args[0])
					if err != nil {
						return err
					}
					if len(versions) < 2 || versions[0].Deleted || versions[1].Deleted {
						return hint(fmt.Errorf("%q has no two versions in a row", args[0]), "name two contents: tracon skill diff OLD NEW")
					}
					args = []string{args[0] + "@" + versions[1].ID, args[0] + "@" + versions[0].ID}
				}
				asideOld, asideNew := b.Spool(), b.Spool()
				defer asideOld.Close()
				defer asideNew.Close()
				old, _, err := a.content(ctx, b, asideOld, args[0])
				if err != nil {
					return err
				}
				now, _, err := a.content(ctx, b, asideNew, args[1])
				if err != nil {
					return err
				}
				var exit error
				changes := []changeJSON{}
				for change, err := range bundle.Changes(old, now) {
					if err != nil {
						return err
					}
					exit = &exitWith{exitError, nil}
					if c := toChangeJSON(change); a.json {
						changes = append(changes, c)
					} else {
						a.printChanges(a.out, []changeJSON{c}, 0)
					}
				}
				if a.json {
					return errors.Join(a.printJSON(changes), exit)
				}
				return exit
			})
		},
	}
}

func (a *app) skillDeleteCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "delete SKILL",
		Example: `  tracon skill delete sales-report --reason "replaced by the new one"`,
		Short:   "Take an imported skill away; its history stays",
		Long: `Takes the tenant's imported skill away. Its history stays, and so do the contents that
a grant or a run names. Imported again with the same bytes, what was granted runs again.`,
		Args: exactly("SKILL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				v, err := b.DeleteSkill(ctx, args[0], reason)
				if err != nil {
					return hint(err, "`tracon skill list` lists the imported ones")
				}
				if a.json {
					return a.printJSON(v)
				}
				fmt.Fprintf(a.out, "deleted %s of tenant %s (version %s)\n", harmless(v.Skill, false), v.Tenant, v.ID)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	return cmd
}
