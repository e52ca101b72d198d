package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/skill"
)

func (a *app) skillCmd() *cobra.Command {
	return group("skill", "List skills and show what one holds", a.skillInitCmd(), a.skillListCmd(), a.skillShowCmd(), a.skillSchemaCmd())
}

func (a *app) skillListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list [FOLDER...]",
		Short: "List the skills in the configured folders, or in these",
		Long: `Lists the skills in the folders of the setting "skills", or in those that are
named, and what is amiss with them. One bad folder never hides another.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.house(cmd, func(_ context.Context, h *daemon.House) error {
				if len(args) == 0 {
					if err := h.AddRoots(); err != nil {
						return err
					}
				}
				for _, folder := range args {
					if err := h.Skills.AddRoot(folder); err != nil {
						return err
					}
				}
				return a.showSkills(h.Skills.List(), h.Skills.Problems())
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

func (a *app) showSkills(skills []skill.Summary, problems []skill.Diagnostic) error {
	if a.json {
		list := []summaryJSON{}
		for _, s := range skills {
			list = append(list, summaryJSON{s.Meta, s.Folder, append([]string{}, s.Scripts...), append([]skill.Diagnostic{}, s.Diagnostics...)})
		}
		return a.printJSON(struct {
			Skills   []summaryJSON      `json:"skills"`
			Problems []skill.Diagnostic `json:"problems"`
		}{list, append([]skill.Diagnostic{}, problems...)})
	}
	rows := [][]string{{"SKILL", "SCRIPTS", "FOLDER", "DESCRIPTION"}}
	for _, s := range skills {
		rows = append(rows, []string{s.Name, fmt.Sprint(len(s.Scripts)), s.Folder, shorten(s.Description, 60)})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	for _, s := range skills {
		a.sayDiagnostics(s.Name+": ", s.Diagnostics)
	}
	a.sayDiagnostics("", problems)
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
		Short:             "Show a skill's scripts, files and digest, and what is amiss",
		Args:              exactly("SKILL"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.house(cmd, func(_ context.Context, h *daemon.House) error {
				name, err := h.SkillName(args[0])
				if err != nil {
					return err
				}
				s, err := h.Skills.Skill(name, h.Config.Content)
				if err != nil {
					return hint(err, "`tracon skill list` lists the known ones; name a folder with a separator, such as ./%s", name)
				}
				return a.showSkill(s)
			})
		},
	}
}

func (a *app) showSkill(s skill.Skill) error {
	j := skillJSON{Meta: s.Meta, Folder: s.Folder, Digest: s.Bundle.Digest(), Files: []fileJSON{}, Scripts: []scriptJSON{}, Diagnostics: append([]skill.Diagnostic{}, s.Diagnostics...)}
	for _, path := range s.Bundle.Paths() {
		text, digest, _ := s.Bundle.Text(path)
		j.Files = append(j.Files, fileJSON{Path: path, Size: len(text), Digest: digest})
	}
	for _, sc := range s.Scripts {
		sj := scriptJSON{Path: sc.Path, Extension: sc.Extension, Mode: string(sc.Declaration.Mode), Declared: sc.Declared, Description: sc.Declaration.Description}
		if len(sc.Declaration.Schema) > 0 {
			sj.Schema = json.RawMessage(sc.Declaration.Schema)
		}
		j.Scripts = append(j.Scripts, sj)
	}
	if a.json {
		return a.printJSON(j)
	}
	rows := [][]string{{"skill", s.Name}, {"description", s.Description}, {"folder", s.Folder}, {"digest", j.Digest.String()}, {"files", sizes(s.Bundle)}}
	if err := a.pairs(rows); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	rows = [][]string{{"SCRIPT", "KIND", "ARGUMENTS", "DESCRIPTION"}}
	for _, sc := range j.Scripts {
		rows = append(rows, []string{sc.Path, sc.Extension, sc.Mode, shorten(sc.Description, 60)})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	rows = [][]string{{"SIZE", "SHA-256", "FILE"}}
	for _, f := range j.Files {
		rows = append(rows, []string{fmt.Sprint(f.Size), f.Digest.Hex()[:16], f.Path})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	a.sayDiagnostics("", s.Diagnostics)
	return nil
}
