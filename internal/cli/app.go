package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// app is one invocation: its streams and the words that every verb takes.
type app struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
	getenv   func(string) string
	dir      string

	data, config, tenant, actor string
	server, keyFile, caFile     string
	given                       func(flag string) bool // among the words that every verb takes; nil: none is
	tenantGiven                 bool                   // by a flag, not by default
	json                        bool
}

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	a.inTTY = term.IsTerminal(int(os.Stdin.Fd()))
	a.outTTY = term.IsTerminal(int(os.Stdout.Fd()))
	a.errTTY = term.IsTerminal(int(os.Stderr.Fd()))
	keepInherited()
	a.dir, _ = os.Getwd()
	ctx, stop := interruptible()
	defer stop()
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitError
	if e, ok := errors.AsType[*exitWith](err); ok {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	fmt.Fprintf(a.err, "%s %s\n", a.paint(a.err, red, "tracon:"), harmless(withoutRoom(err.Error()), true))
	if h, ok := errors.AsType[*hintError](err); ok {
		fmt.Fprintf(a.err, "  %s\n", harmless(h.hint, true))
	}
	return code
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (e interrupted) Error() string { return "stopped by " + e.signal.String() }

// interruptible returns a context that the first interrupt or termination ends.
// A second one ends the program at once, as if nobody listened.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			n, _ := s.(syscall.Signal)
			cancel(interrupted{n})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(came); cancel(nil) }
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tracon",
		Short: "Run the scripts of agent skills, only when every gate says yes",
		Long: `Tracon runs the scripts of agent skills for many tenants, only when every gate
says yes, and keeps a record in which a change shows.

A grant lets a tenant run a script while every byte that the script can see is
the one that was reviewed. Change one byte, and it is refused.`,
		Example: `  tracon run --grant examples/skills/unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934
  tracon grant diff examples/skills/unit-converter scripts/convert.py
  tracon audit verify`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noWord,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, err)
	})
	f := root.PersistentFlags()
	f.StringVar(&a.data, "data", "", "folder that holds the database (default: the platform's data folder)")
	f.StringVar(&a.config, "config", "", "configuration file (default: the platform's, if it is there)")
	f.StringVar(&a.server, "server", "", "act on this server in place of the data folder: https://HOST[:PORT], or unix:///PATH; the key is in TRACON_KEY or --key-file")
	f.StringVar(&a.keyFile, "key-file", "", "file with the key for the server, which nobody else may read")
	f.StringVar(&a.caFile, "ca-file", "", "file with the certificates that the server's may be signed by (default: the system's)")
	f.StringVar(&a.tenant, "tenant", "local", "tenant to act for; with a key of a tenant it is that one")
	f.StringVar(&a.actor, "actor", "", "who acts, for the log (default: the user's name)")
	f.BoolVar(&a.json, "json", false, "print JSON")
	a.given = f.Changed
	root.AddCommand(a.runCmd(), a.explainCmd(), a.grantCmd(), a.skillCmd(), a.policyCmd(), a.runtimeCmd(), a.microvmCmd(), a.keyCmd(), a.tenantCmd(), a.auditCmd(), a.witnessCmd(), a.callsCmd(), a.fsckCmd(), a.retentionCmd(),
		here(a.serveCmd()), a.runnerCmd(), a.mcpCmd(), a.doctorCmd(), a.conformanceCmd(), a.configCmd(), here(a.versionCmd()), here(a.manCmd()))
	strictHelp(root)
	checkUsage(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.server != "" && cmd.Annotations[hereAlone] != "" {
			return refuseServer(cmd, a.server, "leave --server away")
		}
		return nil
	}
	return root
}

// hereAlone marks what reads neither the data folder nor a server.
const hereAlone = "here alone"

// here marks cmd as one that works on this machine alone, whatever the variable and
// the configuration say: told to act on a server by --server, it refuses.
func here(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{hereAlone: "yes"}
	return cmd
}

// checkUsage makes every complaint about a command's words exit as one.
func checkUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(cmd, err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		checkUsage(c)
	}
}

func usage(cmd *cobra.Command, err error) error {
	code := exitUsage
	if cmd.Name() == "run" {
		code = exitTracon // 0 to 123 are the script's
	}
	more := ""
	if h, ok := errors.AsType[*hintError](err); ok {
		more = h.hint + "\n  "
	}
	return &exitWith{code, hint(err, "%susage: %s\n  `%s --help` says more", more, cmd.UseLine(), cmd.CommandPath())}
}

// apart has cmd refuse two flags together, as a mistake in its words.
func apart(cmd *cobra.Command, one, other string) {
	cmd.MarkFlagsMutuallyExclusive(one, other) // for completion: what checks it runs after PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if f := cmd.Flags(); f.Changed(one) && f.Changed(other) {
			return usage(cmd, fmt.Errorf("--%s and --%s exclude each other", one, other))
		}
		return nil
	}
}

// exactly takes n words, named for the complaint.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("%q is one word too many", args[len(names)])
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: noWord, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// noWord refuses a word that is none of the command's own, and says which may be meant.
func noWord(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%q is not one of its commands", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return hint(err, "did you mean `%s %s`?", cmd.CommandPath(), strings.Join(near, "`, or `"+cmd.CommandPath()+" "))
	}
	return err
}

// strictHelp makes the commands that the library adds by itself refuse words that
// they do not know: by themselves they print their help and exit 0.
func strictHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Help about any command",
		Example: `  tracon help run
  tracon help grant add`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range of.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil {
				err = noWord(of, rest)
			}
			if err != nil {
				return usage(cmd, err)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args, c.RunE = noWord, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		c.Example = "  tracon completion bash >tracon.bash"
		for _, shell := range c.Commands() {
			shell.Example = "  tracon completion " + shell.Name()
		}
	}
}

func (a *app) who() string {
	if a.actor != "" {
		return a.actor
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

func (a *app) load() (*config.Config, error) {
	flags := map[string]string{}
	for key, text := range map[string]string{"data": a.data, "server": a.server, "key_file": a.keyFile, "ca_file": a.caFile} {
		if a.given != nil && a.given(strings.ReplaceAll(key, "_", "-")) { // an empty one too: it takes a variable's value away
			flags[key] = text
		}
	}
	c, err := config.Load(config.Source{File: a.config, Flags: flags, Getenv: a.getenv, Dir: a.dir})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return c, nil
}

// house opens the house, which it makes if need be, calls f and closes it. What f
// started is waited for.
func (a *app) house(cmd *cobra.Command, f func(ctx context.Context, h *daemon.House) error) error {
	return a.houseTo(cmd, daemon.Make, f)
}

// houseTo is house for a use that may be less.
func (a *app) houseTo(cmd *cobra.Command, use daemon.Use, f func(ctx context.Context, h *daemon.House) error) error {
	if err := gate.CheckTenant(a.tenant); err != nil {
		return err
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	if c.Server != "" {
		return refuseServer(cmd, c.Server, withoutServer(c))
	}
	return a.openHouse(cmd, use, c, f)
}

func (a *app) openHouse(cmd *cobra.Command, use daemon.Use, c *config.Config, f func(ctx context.Context, h *daemon.House) error) (err error) {
	h, err := daemon.OpenTo(cmd.Context(), use, c, a.logger())
	if err != nil {
		return err
	}
	if h.Copied {
		a.say("tracon: %s has a write-ahead log beside it, and is only read: a private copy of both is", h.Where)
	}
	defer func() {
		if cerr := h.Close(context.WithoutCancel(cmd.Context())); cerr != nil && err == nil {
			err = cerr
		}
	}()
	return f(cmd.Context(), h)
}

// printJSON writes v, indented, with a line feed behind it.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say writes one line for people on standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.err, harmless(fmt.Sprintf(format, args...), true))
}

// logger writes what only the operator may see to standard error.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError}))
}
