package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every example in the help is a command line that the program takes: its verb,
// its flags with their values, and as many words as the verb wants.
func TestEveryExampleIsACommand(t *testing.T) {
	newRoot := func() *cobra.Command {
		a := &app{out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
		return a.root()
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			for _, words := range traconWords(line) {
				t.Run(cmd.CommandPath()+"/"+strings.Join(words, " "), func(t *testing.T) {
					found, rest, err := newRoot().Find(words)
					if err != nil {
						t.Fatal(err)
					}
					if err := found.ParseFlags(rest); err != nil {
						t.Fatal(err)
					}
					if err := found.ValidateArgs(found.Flags().Args()); err != nil {
						t.Fatal(err)
					}
					if err := found.ValidateFlagGroups(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
}

// traconWords returns the words of each call of tracon in a line of shell, as far
// as examples use one: quotes, variables before a command, pipes, && and >FILE.
func traconWords(line string) (calls [][]string) {
	var commands [][]string
	var words []string
	var word strings.Builder
	var quote rune
	in := false
	end := func() {
		if in && !strings.HasPrefix(word.String(), ">") {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range strings.TrimSpace(line) {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' && word.String() == ">": // its file is the next word
		case r == ' ':
			end()
		case r == '|' || r == '&':
			end()
			commands, words = append(commands, words), nil
		default:
			word.WriteRune(r)
			in = true
		}
	}
	end()
	for _, c := range append(commands, words) {
		for len(c) > 0 && strings.Contains(c[0], "=") {
			c = c[1:]
		}
		if len(c) > 0 && c[0] == "tracon" {
			calls = append(calls, c[1:])
		}
	}
	return calls
}
