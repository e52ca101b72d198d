package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/skill"
)

// A starter is the first script of a new skill, in one language.
type starter struct{ path, text string }

var starters = map[string]starter{
	"py": {"scripts/hello.py", `import argparse
import json

parser = argparse.ArgumentParser(description="Greets somebody.")
parser.add_argument("--name", required=True)
args = parser.parse_args()
print(json.dumps({"greeting": f"Hello, {args.name}!"}))
`},
	"sh": {"scripts/hello.sh", `# Greets somebody: hello.sh --name=NAME or hello.sh --name NAME
case "$1" in
--name=*) name=${1#--name=} ;;
--name) name=$2 ;;
*) echo "usage: hello.sh --name NAME" >&2; exit 2 ;;
esac
printf 'Hello, %s!\n' "$name"
`},
	"js": {"scripts/hello.js", `const { parseArgs } = require("node:util");

const { values } = parseArgs({ options: { name: { type: "string" } } });
console.log(JSON.stringify({ greeting: ` + "`Hello, ${values.name}!`" + ` }));
`},
}

const starterMarkdown = `---
name: %s
description: Greets somebody by name. Use when the user wants a greeting.
---

# %s

Run ` + "`%s`" + ` with ` + "`--name`" + `. It prints the greeting.
`

const starterDeclaration = `# How Tracon starts the scripts; see: tracon skill schema
scripts:
  %s:
    description: Greets somebody by name.
    arguments: flags
    schema:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: {type: string, minLength: 1, description: Whom to greet.}
    timeout: 10s
`

func (a *app) skillInitCmd() *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use:   "init FOLDER",
		Short: "Begin a new skill: SKILL.md, tracon.yaml and a first script",
		Long:  `Makes the folder with a small skill in it that runs as it is. A folder that holds anything is left alone.`,
		Example: `  tracon skill init greeter
  tracon run --grant ./greeter scripts/hello.py -- --name Ada`,
		Args: exactly("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, ok := starters[lang]
			if !ok {
				return fmt.Errorf("--lang %q: there is py, sh and js", lang)
			}
			abs, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			name := filepath.Base(abs)
			if entries, err := os.ReadDir(abs); err == nil && len(entries) > 0 {
				return hint(fmt.Errorf("%s is not empty", args[0]), "name a new folder")
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			files := []bundle.File{
				{Path: "SKILL.md", Data: fmt.Appendf(nil, starterMarkdown, name, name, s.path)},
				{Path: skill.DeclarationName, Data: fmt.Appendf(nil, starterDeclaration, s.path)},
				{Path: s.path, Data: []byte(s.text)},
			}
			made, err := wellNamed(name, files)
			if err != nil {
				return err
			}
			for _, f := range files {
				to := filepath.Join(abs, filepath.FromSlash(f.Path))
				if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
					return err
				}
				if err := os.WriteFile(to, f.Data, 0o666); err != nil {
					return err
				}
			}
			if a.json {
				return a.printJSON(exportJSON{name, args[0], made.Bundle.Digest(), filesOf(made.Bundle)})
			}
			fmt.Fprintf(a.out, "made the skill %s in %s; look at it, then:\n  tracon skill lint %s\n  tracon run --grant %s %s -- --name Ada\n",
				harmless(name, false), harmless(args[0], false), quoteWords(dotted(args[0])), quoteWords(dotted(args[0])), s.path)
			return nil
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "py", "language of the first script: py, sh or js")
	_ = cmd.RegisterFlagCompletionFunc("lang", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return slices.Sorted(func(yield func(string) bool) {
			for l := range starters {
				if !yield(l) {
					return
				}
			}
		}), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// wellNamed returns the skill of those files, unless lint finds an error in it: of
// what is the same for every new skill there is none, so it is the name's.
func wellNamed(name string, files []bundle.File) (skill.Skill, error) {
	s, err := skill.FromFiles(files, bundle.Limits{})
	for _, d := range skill.Lint(s) {
		if err == nil && d.Severity == skill.Error {
			err = errors.New(d.String())
		}
	}
	if err != nil {
		return skill.Skill{}, hint(fmt.Errorf("%q is no name of a skill: %w", name, err), "name a folder of lower case letters, digits and single hyphens, such as greeter")
	}
	return s, nil
}

// dotted writes a folder so that it is taken for one wherever a skill is named.
func dotted(folder string) string {
	if filepath.Base(folder) == folder {
		return "./" + folder
	}
	return folder
}

func (a *app) skillSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Example: `  tracon skill schema > tracon.schema.json`,
		Short:   "Print the JSON Schema of tracon.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(skill.DeclarationSchema())
			return err
		},
	}
}
