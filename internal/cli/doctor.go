package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// finding is one line of what the doctor says.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) doctorCmd() *cobra.Command {
	var tier string
	cmd := &cobra.Command{
		Use: "doctor",
		Example: `  tracon doctor
  tracon doctor --tier sandbox && echo safe to go on
  tracon doctor --json`,
		Short: "Look at this installation: data, log, switches, interpreters, walls",
		Long: `Looks at what a run needs, and says what is missing and how to get it. Exits 0 when
scripts can run, else 1. A wall that the executor does not claim is told, and is
no fault by itself.

The tier that is asked for must stand: by --tier, or else by the tenant's policy and
its grants in force. With --tier the exit code says that alone: 0 when a tier as high
stands here, else 1, whatever else is amiss.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tier != "" && !grant.Tier(tier).Valid() {
				return usage(cmd, fmt.Errorf("--tier %q: the tiers are %v", tier, grant.Tiers()))
			}
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				findings, err := a.examine(ctx, h)
				if err != nil {
					return err
				}
				need, err := a.required(ctx, h, tier)
				if err != nil {
					return err
				}
				host, err := h.Hosts.Host(ctx)
				if err != nil {
					return err
				}
				posture, err := h.Posture(ctx)
				if err != nil {
					findings = append(findings, finding{"executor", false, err.Error(), "mend what the sentence names"})
				} else {
					findings = append(findings, finding{"executor", true, fmt.Sprintf("%s, tier %s", posture.Executor, posture.Tier), ""})
				}
				stands := need.stands(host, posture)
				walls, err := a.requiredWalls(ctx, h, host, posture)
				if err != nil {
					return err
				}
				findings = append(append(findings, stands), walls...)
				ok := stands.OK
				if tier == "" {
					ok = !slices.ContainsFunc(findings, func(f finding) bool { return !f.OK })
				}
				var exit error
				if !ok {
					exit = &exitWith{exitError, nil}
				}
				if a.json {
					return errors.Join(a.printJSON(struct {
						OK         bool             `json:"ok"` // what the exit code says
						Required   grant.Tier       `json:"requiredTier,omitempty"`
						TierStands bool             `json:"tierStands"`
						Findings   []finding        `json:"findings"`
						Posture    executor.Posture `json:"posture"`
					}{ok, need.tier, stands.OK, findings, posture}), exit)
				}
				rows := [][]string{}
				for _, f := range findings {
					rows = append(rows, told(mark(f.OK, "ok", "AMISS"), f.What, f.Detail, f.Remedy)...)
				}
				for _, w := range posture.Walls {
					rows = append(rows, told(mark(w.Stands, "stands", "no wall"), w.Name, w.Proof, w.Remedy)...)
				}
				return errors.Join(a.styled(rows, false, func(row, column int) style {
					switch {
					case column > 0:
						return plain
					case rows[row][0] == "ok" || rows[row][0] == "stands":
						return green
					case rows[row][0] == "AMISS":
						return red
					}
					return yellow
				}), exit)
			})
		},
	}
	cmd.Flags().StringVar(&tier, "tier", "", "tier that must stand here: process, sandbox, kernel, vm; the exit code says whether it does")
	return cmd
}

// told are the rows of one finding: what to do stands below what is.
func told(mark, what, detail, remedy string) [][]string {
	rows := [][]string{{mark, what, detail}}
	if remedy != "" {
		rows = append(rows, []string{"", "", "→ " + remedy})
	}
	return rows
}

func mark(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// anchors tells what besides the data folder would show a log that was rolled
// back. That there is little is told, and is no fault by itself.
func anchors(c *config.Config) finding {
	var has, lacks []string
	say := func(there bool, what, how string) {
		if there {
			has = append(has, what)
		} else {
			lacks = append(lacks, how)
		}
	}
	say(c.State != "", "a mark in "+c.State, "`state`, a folder for the mark")
	say(c.Checkpoints != "", "checkpoints in "+c.Checkpoints, "`checkpoints`, a folder on another disk")
	say(len(c.Witnesses) > 0, fmt.Sprintf("%d witnesses, of which %d must sign", len(c.Witnesses), c.WitnessQuorum), "`witnesses`, which somebody else runs")
	f := finding{What: "log's anchors", OK: true, Detail: cmp.Or(strings.Join(has, "; "), "none")}
	if len(lacks) > 0 {
		f.Remedy = "more can be had: " + strings.Join(lacks, "; ")
	}
	return f
}

func (a *app) examine(ctx context.Context, h *daemon.House) ([]finding, error) {
	findings := []finding{{"data", true, h.Where, ""}}
	if h.Config.File != "" {
		findings = append(findings, finding{"configuration", true, h.Config.File, ""})
	}
	if v, err := h.VerifyLog(ctx, daemon.Against{}, nil); err != nil {
		word, _ := faultOf(err)
		findings = append(findings, finding{"log", false, err.Error(), remedyOf(word)})
	} else {
		findings = append(findings, finding{"log", true, fmt.Sprintf("%d entries add up, %d are signed", v.Tree.Size, v.Signed), ""})
	}
	findings = append(findings, anchors(h.Config))
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := h.Gate.Policy(ctx, a.tenant)
	if err != nil {
		return nil, err
	}
	where := "`tracon policy set --host --enabled`, or a first `tracon run --grant`"
	if h.Config.File != "" {
		where = "`enabled: true` in " + h.Config.File
	}
	findings = append(findings,
		finding{"host's switch", host.Enabled, mark(host.Enabled, "on", "off"), mark(host.Enabled, "", where)},
		finding{"tenant's switch", policy.Enabled, a.tenant + " is " + mark(policy.Enabled, "on", "off"), mark(policy.Enabled, "", "`tracon policy set --enabled`, or a first `tracon run --grant`")})
	for _, ext := range slices.Sorted(maps.Keys(host.Interpreters)) {
		in := host.Interpreters[ext]
		findings = append(findings, a.examineInterpreter(ctx, h, ext, in, host.Runtimes[in.Name]))
	}
	if len(host.Interpreters) == 0 {
		findings = append(findings, finding{"interpreters", false, "the allow-list is empty: nothing runs", "a first `tracon run --grant` lists the one that it needs"})
		for _, ext := range interpreter.Extensions() {
			if found, err := interpreter.Find(ctx, ext); err == nil {
				findings = append(findings, finding{"found", true, fmt.Sprintf("%s = %s %s", ext, found.Path, found.Version), ""})
			}
		}
	}
	return findings, nil
}

// examineInterpreter looks at an entry of the allow-list. Meant is the runtime that
// its name means by now, which may be another than the one it lies in.
func (a *app) examineInterpreter(ctx context.Context, h *daemon.House, ext string, in gate.Interpreter, meant bundle.Digest) finding {
	text := config.FormatInterpreter(in)
	if h.Config.File != "" {
		text = h.Config.Interpreters[ext]
	}
	f := finding{"interpreter " + ext, false, "", fmt.Sprintf("`tracon policy set --host --interpreters %s=%s`", ext, text)}
	version := ""
	var found gate.Interpreter
	var err error
	switch {
	case in.Name != "" && in.Image.IsZero(): // a configuration file names what is not there
		found, err = h.Probe(ctx, ext, text)
	case in.Name != "":
		found, err = h.Again(ext, in)
	default:
		var probed interpreter.Found
		probed, err = interpreter.Probe(ctx, ext, in.Path)
		found, version = probed.Interpreter(), probed.Version
	}
	switch {
	case err != nil:
		f.Detail, f.Remedy = err.Error(), "install or import it, or name another in the allow-list"
	case found.Digest != in.Digest:
		f.Detail = text + " is not the file that was probed"
	case in.Image != meant:
		// What was listed still runs: its runtime is kept.
		f.OK, f.Detail, f.Remedy = true, fmt.Sprintf("%s, in %s; the name means another runtime now", text, in.Image), f.Remedy+" moves it on"
	default:
		f.OK, f.Detail, f.Remedy = true, strings.TrimSpace(text+" "+version), ""
	}
	return f
}
