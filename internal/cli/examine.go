package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
)

func (l *local) Examine(ctx context.Context, tier grant.Tier) (examination, error) {
	findings, err := l.examine(ctx)
	if err != nil {
		return examination{}, err
	}
	need, err := required{}, error(nil)
	if tier != "" {
		need = required{tier, "--tier"}
	} else if need, err = requiredBy(ctx, l); err != nil {
		return examination{}, err
	}
	host, err := l.Host(ctx)
	if err != nil {
		return examination{}, err
	}
	policy, err := l.Policy(ctx)
	if err != nil {
		return examination{}, err
	}
	elsewhere := l.h.Reached(ctx)
	for _, s := range elsewhere {
		findings = append(findings, finding{s.What, s.OK, s.Detail, s.Remedy})
	}
	posture, err := l.h.Posture(ctx)
	if err != nil && len(elsewhere) > 0 {
		posture.Executor = l.h.Config.Executor // what is amiss with it was said
	} else if err != nil {
		findings = append(findings, finding{"executor", false, err.Error(), "mend what the sentence names"})
	} else {
		findings = append(findings, finding{"executor", true, standing(posture), ""})
	}
	return concluded(findings, tier, need, host, policy, posture), nil
}

// standing is how an executor stands, in words.
func standing(p executor.Posture) string {
	s := fmt.Sprintf("%s, tier %s", p.Executor, p.Tier)
	if p.Claimed {
		s += ", as it claims: nobody here has proved it"
	}
	return s
}

func (l *local) examine(ctx context.Context) ([]finding, error) {
	h := l.h
	findings := []finding{{"data", true, h.Where, ""}}
	if h.Config.File != "" {
		findings = append(findings, finding{"configuration", true, h.Config.File, ""})
	}
	findings = append(findings, l.examineLog(ctx)...)
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := h.Gate.Policy(ctx, l.tenant)
	if err != nil {
		return nil, err
	}
	where := "`tracon policy set --host --enabled`, or a first `tracon run --grant`"
	if h.Config.File != "" {
		where = "`enabled: true` in " + h.Config.File
	}
	findings = append(findings,
		finding{"host's switch", host.Enabled, mark(host.Enabled, "on", "off"), mark(host.Enabled, "", where)},
		finding{"tenant's switch", policy.Enabled, l.tenant + " is " + mark(policy.Enabled, "on", "off"), mark(policy.Enabled, "", "`tracon policy set --enabled`, or a first `tracon run --grant`")})
	if policy.Suspended {
		findings = append(findings, finding{"tenant", false, l.tenant + " is switched off by the platform, or deleted", "`tracon tenant set " + l.tenant + " --on`, unless it was deleted, which is for ever"})
	}
	for _, ext := range slices.Sorted(maps.Keys(host.Interpreters)) {
		in := host.Interpreters[ext]
		findings = append(findings, l.examineInterpreter(ctx, ext, in, host.Runtimes[in.Name]))
	}
	if len(host.Interpreters) == 0 {
		findings = append(findings, finding{"interpreters", false, "the allow-list is empty: nothing runs", "a first `tracon run --grant` lists the one that it needs"})
		for _, ext := range interpreter.Extensions() {
			if found, err := h.Find(ctx, ext); err == nil {
				findings = append(findings, finding{"found", true, fmt.Sprintf("%s = %s %s", ext, found.Path, found.Version), ""})
			}
		}
	}
	return findings, nil
}

// examineInterpreter looks at an entry of the allow-list. Meant is the runtime that
// its name means by now, which may be another than the one it lies in.
func (l *local) examineInterpreter(ctx context.Context, ext string, in gate.Interpreter, meant bundle.Digest) finding {
	h := l.h
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
