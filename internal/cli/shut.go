package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
)

// sayShut says on standard error which switch or list still refuses what is granted,
// and the commands that open it. It is advice: what cannot be asked, as with a key that
// may not see the host, is not told of, and the gates decide in any case.
func (a *app) sayShut(ctx context.Context, b backend, granted []grant.Grant) {
	var needs []string // extensions
	for _, g := range granted {
		if ext := gate.Extension(g.Ref.Script, ""); ext != "" {
			needs = append(needs, ext)
		}
	}
	slices.Sort(needs)
	needs = slices.Compact(needs)
	var commands []string
	open := func(words string, on bool, listed []string, entry func(ext string) string) {
		missing := slices.DeleteFunc(slices.Clone(needs), func(ext string) bool { return slices.Contains(listed, ext) })
		if on && len(missing) == 0 && len(listed) > 0 {
			return
		}
		if !on {
			words += " --enabled"
		}
		// The flag names the whole list, so what is listed stands in it too.
		entries := []string{}
		for _, ext := range slices.Sorted(slices.Values(slices.Concat(listed, missing))) {
			entries = append(entries, entry(ext))
		}
		switch {
		case len(entries) == 0:
			words += " --interpreters …"
		case len(missing) > 0:
			words += " --interpreters " + quoteWords(strings.Join(entries, ","))
		}
		commands = append(commands, words)
	}
	var why []string
	if host, err := b.Host(ctx); err == nil {
		listed := slices.Sorted(maps.Keys(host.Interpreters))
		why = append(why, shut("this host", host.Enabled, listed, needs)...)
		open("tracon policy set --host", host.Enabled, listed, func(ext string) string {
			if in, ok := host.Interpreters[ext]; ok && in.Path != "" && in.Name == "" {
				return ext + "=" + config.FormatInterpreter(in)
			} else if ok {
				return ext + "=runtime:" + strings.TrimPrefix(config.FormatInterpreter(in), "runtime:")
			}
			return ext
		})
	}
	if p, err := b.Policy(ctx); err == nil {
		why = append(why, shut("tenant "+b.Tenant(), p.Enabled, p.Interpreters, needs)...)
		words := "tracon policy set"
		if b.Tenant() != "local" {
			words += " --tenant " + b.Tenant()
		}
		open(words, p.Enabled, p.Interpreters, func(ext string) string { return ext })
	}
	if len(why) == 0 {
		return
	}
	a.say("tracon: nothing of it runs yet: %s", strings.Join(why, "; "))
	if !b.GrantsAtOnce() {
		a.say("  %s", b.OpenHint())
		return
	}
	for _, c := range commands {
		a.say("  %s", c)
	}
	a.say("  or `tracon run --grant FOLDER SCRIPT …` once, which switches on what that script needs")
}

// shut says what keeps scripts with the extensions from running.
func shut(whose string, on bool, listed, needs []string) (why []string) {
	if !on {
		why = append(why, "scripts are off for "+whose)
	}
	if len(listed) == 0 && len(needs) == 0 {
		return append(why, whose+" allows no interpreter")
	}
	for _, ext := range needs {
		if !slices.Contains(listed, ext) {
			why = append(why, fmt.Sprintf("%s allows no interpreter for .%s scripts", whose, ext))
		}
	}
	return why
}
