package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/conformance"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) conformanceCmd() *cobra.Command {
	return group("conformance", "See whether the configured executor, or a runner service, does what it says",
		`  tracon conformance executor
  tracon conformance hostile --wall network
  tracon conformance runner https://runner.example.com --key-file runner.key`,
		here(a.executorCmd()), here(a.hostileCmd()), here(a.conformanceRunnerCmd()))
}

func (a *app) hostileCmd() *cobra.Command {
	var h conformance.Hostile
	var list, controls bool
	cmd := &cobra.Command{
		Use: "hostile",
		Example: `  tracon conformance hostile
  tracon conformance hostile --wall network --wall files
  tracon conformance hostile --case F01 --json`,
		Short: "Attack the configured executor with harmless hostile scripts",
		Long: `Runs the scripts of the hostile catalogue (docs/threat-model.md) in the executor
that the configuration names, and says of each whether something got through. As
targets it plants files, a process, listeners on loopback and a key, each with a
secret of its own, and takes them away at the end. It needs no root, no grant and
no data folder, writes no log, and nothing leaves the host.

Scripts by which a host could suffer on which a wall is missing (those that take
memory, processes, space or time without end) are not in this program.

With --controls each script also runs as a plain process, where it must get
through: else the case proves nothing on this host.

It exits with 0 when all that the executor promises held, 3 when something got
through, 4 when of some case nothing is known.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return a.listCases()
			}
			return a.hostile(cmd.Context(), h, controls)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&h.Cases, "case", nil, "run this case alone (repeatable)")
	f.StringSliceVar(&h.Walls, "wall", nil, "run the cases about this wall alone (repeatable)")
	f.BoolVar(&controls, "controls", false, "also show that each attack works where no wall stands")
	f.BoolVar(&list, "list", false, "name the cases and run none")
	fixed := func(words func() []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("case", fixed(func() (ids []string) {
		for _, c := range conformance.Cases() {
			ids = append(ids, c.ID+"\t"+c.Title)
		}
		return ids
	}))
	_ = cmd.RegisterFlagCompletionFunc("wall", fixed(func() (walls []string) {
		for _, c := range conformance.Cases() {
			walls = append(walls, string(c.Wall))
		}
		slices.Sort(walls)
		return slices.Compact(walls)
	}))
	return cmd
}

func (a *app) listCases() error {
	if a.json {
		return a.printJSON(conformance.Cases())
	}
	rows := [][]string{{"case", "wall", "class", "what it does"}}
	for _, c := range conformance.Cases() {
		rows = append(rows, []string{c.ID, string(c.Wall), c.Class, c.Title})
	}
	return a.table(rows)
}

// configured opens the executor that the configuration names, without a house.
func (a *app) configured(ctx context.Context) (*config.Config, daemon.Local, executor.Posture, error) {
	c, err := a.load()
	if err != nil {
		return nil, nil, executor.Posture{}, err
	}
	e, err := daemon.OpenExecutor(c, c.Executor, a.logger())
	if err != nil {
		return nil, nil, executor.Posture{}, hint(err, "`tracon doctor` says what is missing on this host")
	}
	p, err := e.Posture(ctx)
	if err != nil {
		return nil, nil, executor.Posture{}, errors.Join(err, e.Close())
	}
	return c, e, p, nil
}

func (a *app) executorCmd() *cobra.Command {
	return &cobra.Command{
		Use: "executor",
		Example: `  tracon conformance executor
  tracon conformance executor --json`,
		Short: "See whether the configured executor keeps the rules of every executor",
		Long: `Runs the suite for executors (executor/executortest) against the one that the
configuration names, in sh, Python and Node as far as they are there: arguments,
input, output, files, endings, timeouts, cancellation, many runs at once. It needs
no root, no grant and no data folder, and writes no log. Scripts that take memory,
processes and output without end are left out.

It exits with 0 when all rules hold, and 3 when one does not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, e, posture, err := a.configured(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.Close()) }()
			p := a.progress("rules")
			var n uint64
			checks, err := conformance.Executor(cmd.Context(), e, posture, func(conformance.Check) { n++; p.show(n) })
			p.done()
			if err != nil {
				return err
			}
			return a.checked(c.Executor, string(posture.Tier), checks)
		},
	}
}

// checked prints the checks, and returns the exit code that they have.
func (a *app) checked(name, tier string, checks []conformance.Check) error {
	rows, failed, without := [][]string{{"script", "rule", ""}}, 0, 0
	for _, c := range checks {
		word := mark(c.OK, "held", "BROKEN")
		switch {
		case !c.OK:
			failed++
		case c.NotOffered:
			without++
			word = "not offered"
		}
		rows = append(rows, []string{c.Language, c.Rule, word})
	}
	var exit error
	if failed > 0 {
		exit = &exitWith{exitFindings, nil}
	}
	if a.json {
		return errors.Join(a.printJSON(struct {
			OK       bool                `json:"ok"`
			Executor string              `json:"executor"`
			Tier     string              `json:"tier"`
			Checks   []conformance.Check `json:"checks"`
		}{exit == nil, name, tier, checks}), exit)
	}
	err := a.styled(rows, true, func(row, column int) style {
		switch {
		case column < 2 || rows[row][2] == "not offered":
			return plain
		case rows[row][2] == "held":
			return green
		}
		return red
	})
	fmt.Fprintf(a.out, "\n%s, tier %s: %d held, %d BROKEN", name, tier, len(checks)-failed-without, failed)
	if without > 0 {
		fmt.Fprintf(a.out, ", %d not offered", without)
	}
	fmt.Fprintln(a.out)
	for _, c := range checks {
		for _, f := range c.Faults {
			fmt.Fprintf(a.out, "%s: %s\n", strings.TrimSpace(c.Language+" "+c.Rule), harmless(f, true))
		}
	}
	return errors.Join(err, exit)
}

// hostile runs the cases and tells what came of them.
func (a *app) hostile(ctx context.Context, h conformance.Hostile, controls bool) (err error) {
	c, e, posture, err := a.configured(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	h.Executor, h.Posture = e, posture
	if controls {
		p, err := daemon.OpenExecutor(c, daemon.Process, a.logger())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		h.Control = p
	}
	p := a.progress("cases")
	var n uint64
	h.Over = func(r conformance.Result) {
		n++
		p.what = "cases, last " + r.ID
		p.show(n)
	}
	results, err := h.Run(ctx)
	p.done()
	if errors.Is(err, conformance.ErrFilter) {
		return &exitWith{exitUsage, hint(err, "`tracon conformance hostile --list` names them")}
	}
	if err != nil {
		return err
	}
	return a.judged(c.Executor, string(h.Posture.Tier), results)
}

// judged prints the results, and returns the exit code that they have.
func (a *app) judged(name, tier string, results []conformance.Result) error {
	counts := map[conformance.Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
	}
	var exit error
	switch {
	case counts[conformance.GotThrough] > 0:
		exit = &exitWith{exitFindings, nil}
	case counts[conformance.NotKnown]+counts[conformance.ControlBroken] > 0:
		exit = &exitWith{exitNotKnown, nil}
	}
	if a.json {
		return errors.Join(a.printJSON(struct {
			OK       bool                        `json:"ok"`
			Executor string                      `json:"executor"`
			Tier     string                      `json:"tier"`
			Counts   map[conformance.Outcome]int `json:"counts"`
			Results  []conformance.Result        `json:"results"`
		}{exit == nil, name, tier, counts, results}), exit)
	}
	rows := [][]string{{"case", "script", "outcome", "what was tried", "what must hold"}}
	for _, r := range results {
		rows = append(rows, []string{r.ID, r.Language, string(r.Outcome), r.Tried, r.Must})
	}
	err := a.styled(rows, true, func(row, column int) style {
		switch {
		case column != 2:
			return plain
		case rows[row][2] == string(conformance.Held):
			return green
		case rows[row][2] == string(conformance.NotPromised):
			return plain
		case rows[row][2] == string(conformance.GotThrough):
			return red
		}
		return yellow
	})
	var sums []string
	for _, o := range []conformance.Outcome{conformance.Held, conformance.GotThrough, conformance.NotPromised, conformance.ControlBroken, conformance.NotKnown} {
		if counts[o] > 0 || o == conformance.Held || o == conformance.GotThrough {
			sums = append(sums, fmt.Sprintf("%d %s", counts[o], o))
		}
	}
	fmt.Fprintf(a.out, "\n%s, tier %s: %s\n", name, tier, strings.Join(sums, ", "))
	for _, r := range results {
		for _, f := range r.Faults {
			fmt.Fprintf(a.out, "%s %s: %s\n", r.ID, r.Language, harmless(f, true))
		}
	}
	return errors.Join(err, exit)
}
