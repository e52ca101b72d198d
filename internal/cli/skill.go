package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/skill"
)

func (a *app) skillCmd() *cobra.Command {
	return group("skill", "Write, check, list, import and export skills",
		`  tracon skill init greeter
  tracon skill lint ./greeter`,
		here(a.skillInitCmd()), a.skillListCmd(), a.skillShowCmd(), a.skillLintCmd(), here(a.skillSchemaCmd()),
		a.skillImportCmd(), a.skillExportCmd(), a.skillHistoryCmd(), a.skillDiffCmd(), a.skillDeleteCmd())
}

func (a *app) skillListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list [FOLDER...]",
		Example: `  tracon skill list
  tracon skill list ./skills --json`,
		Short: "List the imported skills and those in the configured folders, or in these",
		Long: `Lists the tenant's imported skills and those in the folders of the setting "skills",
or the skills in the folders that are named, and what is amiss with them. One bad folder never hides another.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
					list, err := b.Skills(ctx)
					if err != nil {
						return err
					}
					return a.showSkills(list)
				})
			}
			return a.houseTo(cmd, daemon.List, func(_ context.Context, h *daemon.House) error {
				for _, folder := range args {
					if err := h.Skills.AddRoot(folder); err != nil {
						return hint(err, "name a folder that holds skills, each in a folder of its own")
					}
				}
				return a.showSkills(toSkillsJSON(nil, h.Skills))
			})
		},
	}
}

type summaryJSON struct {
	skill.Meta
	Folder      string             `json:"folder"`
	Scripts     []string           `json:"scripts"`
	Diagnostics []skill.Diagnostic `json:"diagnostics"`
}

type skillsJSON struct {
	Imported []admin.Version    `json:"imported"`
	Skills   []summaryJSON      `json:"skills"`
	Problems []skill.Diagnostic `json:"problems"`
}

func toSkillsJSON(imported []admin.Version, folders *skill.Library) skillsJSON {
	list := []summaryJSON{}
	for _, s := range folders.List() {
		list = append(list, summaryJSON{s.Meta, s.Folder, append([]string{}, s.Scripts...), append([]skill.Diagnostic{}, s.Diagnostics...)})
	}
	return skillsJSON{append([]admin.Version{}, imported...), list, append([]skill.Diagnostic{}, folders.Problems()...)}
}

func (a *app) showSkills(list skillsJSON) error {
	if a.json {
		return a.printJSON(list)
	}
	rows := [][]string{{"SKILL", "SCRIPTS", "FOLDER", "DESCRIPTION"}}
	for _, v := range list.Imported {
		rows = append(rows, []string{v.Skill, "", "imported " + v.Imported.Local().Format(time.DateTime), v.Reason})
	}
	for _, s := range list.Skills {
		rows = append(rows, []string{s.Name, fmt.Sprint(len(s.Scripts)), s.Folder, shorten(s.Description, 60)})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	for _, s := range list.Skills {
		a.sayDiagnostics(s.Name+": ", s.Diagnostics)
	}
	a.sayDiagnostics("", list.Problems)
	return nil
}

func (a *app) sayDiagnostics(before string, list []skill.Diagnostic) {
	for _, d := range list {
		a.say("%s%s", before, d)
	}
}

func shorten(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

type skillJSON struct {
	skill.Meta
	Folder      string             `json:"folder"`
	Digest      bundle.Digest      `json:"digest"`
	Files       []fileJSON         `json:"files"`
	Scripts     []scriptJSON       `json:"scripts"`
	Diagnostics []skill.Diagnostic `json:"diagnostics"`
}

type scriptJSON struct {
	Path        string `json:"path"`
	Extension   string `json:"extension"`
	Mode        string `json:"mode"`
	Declared    bool   `json:"declared"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"schema,omitempty"`
}

func (a *app) skillShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "show SKILL",
		Example:           `  tracon skill show ./unit-converter`,
		Short:             "Show a skill's scripts, files and digest, and what is amiss",
		Args:              exactly("SKILL"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atSkill(cmd, daemon.List, args, func(ctx context.Context, b backend) error {
				s, err := b.Skill(ctx, args[0])
				if err != nil {
					return err
				}
				return a.showSkill(s)
			})
		},
	}
}

func (a *app) skillLintCmd() *cobra.Command {
	var strict, risks bool
	cmd := &cobra.Command{
		Use:   "lint SKILL...",
		Short: "Say what is amiss with skills, strictly by the standard",
		Long: `Says what is amiss by the letter of the Agent Skills standard, what an author will
stumble over, and, with --risks, what a reviewer should look at: network, subprocess,
eval, environment, encoded blobs, mixed scripts, invisible characters. Exits 0 when
there is no error (with --strict: no warning either), else 1.`,
		Example: `  tracon skill lint ./sales-report
  tracon skill lint skills/* --strict --risks`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("SKILL is missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atFolder(cmd, daemon.List, args, func(ctx context.Context, b backend) error {
				var exit error
				all := map[string][]skill.Diagnostic{}
				for _, word := range args {
					list, err := b.Lint(ctx, word)
					if _, told := errors.AsType[*hintError](err); err != nil && !told {
						return hint(err, "name the folder of a skill, which holds its SKILL.md, or a skill of `tracon skill list`")
					}
					if err != nil {
						return err
					}
					all[word] = []skill.Diagnostic{}
					errs, warnings := 0, 0
					for _, d := range list {
						switch {
						case d.Risk() && !risks:
							continue
						case d.Severity == skill.Error:
							errs++
						case d.Severity == skill.Warning:
							warnings++
						}
						all[word] = append(all[word], d)
					}
					if errs > 0 || strict && warnings > 0 {
						exit = &exitWith{exitError, nil}
					}
					if a.json {
						continue
					}
					for _, d := range all[word] {
						st := map[skill.Severity]style{skill.Error: red, skill.Warning: yellow}[d.Severity]
						fmt.Fprintf(a.out, "%s: %s\n", harmless(word, false), a.paint(a.out, st, d.String()))
					}
					fmt.Fprintf(a.out, "%s: %d errors, %d warnings\n", harmless(word, false), errs, warnings)
				}
				if a.json {
					return errors.Join(a.printJSON(all), exit)
				}
				return exit
			})
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings fail too")
	cmd.Flags().BoolVar(&risks, "risks", false, "show signs of risk")
	return cmd
}

func toSkillJSON(s skill.Skill) skillJSON {
	j := skillJSON{Meta: s.Meta, Folder: s.Folder, Digest: s.Bundle.Digest(), Files: filesOf(s.Bundle), Scripts: []scriptJSON{}, Diagnostics: append([]skill.Diagnostic{}, s.Diagnostics...)}
	for _, sc := range s.Scripts {
		sj := scriptJSON{Path: sc.Path, Extension: sc.Extension, Mode: string(sc.Declaration.Mode), Declared: sc.Declared, Description: sc.Declaration.Description}
		if len(sc.Declaration.Schema) > 0 {
			sj.Schema = json.RawMessage(sc.Declaration.Schema)
		}
		j.Scripts = append(j.Scripts, sj)
	}
	return j
}

func (a *app) showSkill(s skillJSON) error {
	if a.json {
		return a.printJSON(s)
	}
	rows := [][]string{{"skill", s.Name}, {"description", s.Description}, {"folder", s.Folder}, {"digest", s.Digest.String()}, {"files", sizesOf(s.Files)}}
	if err := a.pairs(rows); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	rows = [][]string{{"SCRIPT", "KIND", "ARGUMENTS", "DESCRIPTION"}}
	for _, sc := range s.Scripts {
		rows = append(rows, []string{sc.Path, sc.Extension, sc.Mode, shorten(sc.Description, 60)})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	if err := a.table(fileRows(s.Files)); err != nil {
		return err
	}
	a.sayDiagnostics("", s.Diagnostics)
	return nil
}

// fileRows are the files of a skill as a table.
func fileRows(files []fileJSON) [][]string {
	rows := [][]string{{"SIZE", "SHA-256", "FILE"}}
	for _, f := range files {
		rows = append(rows, []string{fmt.Sprint(f.Size), f.Digest.Hex()[:16], f.Path})
	}
	return rows
}

func sizesOf(files []fileJSON) string {
	size := 0
	for _, f := range files {
		size += f.Size
	}
	return fmt.Sprintf("%d files (%d bytes)", len(files), size)
}
