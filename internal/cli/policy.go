package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

func (a *app) policyCmd() *cobra.Command {
	return group("policy", "Show and set what holds for a tenant, and for the host",
		`  tracon policy show
  tracon policy set --enabled --interpreters py,sh`,
		a.policyShowCmd(), a.policySetCmd())
}

func (a *app) policyShowCmd() *cobra.Command {
	var host bool
	cmd := &cobra.Command{
		Use: "show",
		Example: `  tracon policy show --tenant acme
  tracon policy show --host`,
		Short: "Show the tenant's policy, or the host's settings",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				if host {
					settings, err := b.Host(ctx)
					if err != nil {
						return err
					}
					return a.showHost(b, settings)
				}
				p, err := b.Policy(ctx)
				if err != nil {
					return err
				}
				return a.showPolicy(b, p)
			})
		},
	}
	cmd.Flags().BoolVar(&host, "host", false, "the host's settings, which hold for every tenant")
	return cmd
}

func (a *app) showPolicy(b backend, p gate.Policy) error {
	p = gate.HideSecrets(p)
	if a.json {
		return a.printJSON(p)
	}
	rows := [][]string{
		{"tenant", b.Tenant()}, {"enabled", fmt.Sprint(p.Enabled)}, {"interpreters", orNone(strings.Join(p.Interpreters, ","))},
		{"min-tier", orNone(string(p.MinTier))}, {"timeout", p.Timeout.String()},
		{"max-arguments", config.FormatSize(int64(p.MaxArguments))}, {"max-output", config.FormatSize(int64(p.MaxOutput))},
		{"max-inputs", config.FormatSize(p.MaxInputs)}, {"max-outputs", config.FormatSize(p.MaxOutputs)},
		{"max-output-files", fmt.Sprint(p.MaxOutputFiles)}, {"memory", config.FormatSize(p.Memory)}, {"processes", fmt.Sprint(p.Processes)},
		{"network", string(cmp.Or(p.Network, gate.NoNetwork))}, {"require", orNone(strings.Join(p.RequireWalls, "; "))}, {"keep-arguments", fmt.Sprint(p.KeepArguments)},
		{"secret", orNone(strings.Join(p.Secrets, ","))},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		rows = append(rows, []string{"env", name + "=" + p.Environment[name]})
	}
	return a.pairs(rows)
}

func (a *app) showHost(b backend, s gate.Host) error {
	if a.json {
		return a.printJSON(s)
	}
	rows := [][]string{{"kept in", b.HostKept()}, {"enabled", fmt.Sprint(s.Enabled)}, {"network", string(cmp.Or(s.Network, gate.NoNetwork))},
		{"require", orNone(strings.Join(s.RequireWalls, "; "))}}
	for _, ext := range slices.Sorted(maps.Keys(s.Interpreters)) {
		rows = append(rows, []string{"interpreter", ext + " = " + config.FormatInterpreter(s.Interpreters[ext])})
	}
	if len(s.Interpreters) == 0 {
		rows = append(rows, []string{"interpreter", "none: nothing runs"})
	}
	return a.pairs(rows)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// policyFlags are the fields that `policy set` changes. A flag that is not
// given leaves its field alone.
type policyFlags struct {
	host, enabled, keep     bool
	interpreters, env       []string
	require, secrets        []string
	minTier, network        string
	timeout                 time.Duration
	arguments, output       string
	inputs, outputs, memory string
	outputFiles, processes  int
	changed                 func(string) bool
}

func (a *app) policySetCmd() *cobra.Command {
	var p policyFlags
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the tenant's policy, or the host's settings",
		Long: `Changes what the flags name and leaves the rest. The change and its entry in the
log are written together. A size or time of 0 means the default.

The host's settings (--host) are kept in the data folder only where there is no
configuration file; with one, set them there.`,
		Example: `  tracon policy set --enabled --interpreters py,sh
  tracon policy set --timeout 2m --max-output 1MiB
  tracon policy set --require memory,processes
  tracon policy set --env API_TOKEN=… --secret API_TOKEN
  tracon policy set --enabled=false
  tracon policy set --host --enabled --interpreters py=/usr/bin/python3
  tracon policy set --host --interpreters py=runtime:python-3.12,sh=/bin/bash
  tracon policy set --host --network loopback && tracon policy set --network loopback`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.changed = cmd.Flags().Changed
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				if p.host {
					set, err := b.SetHost(ctx, p.hostChange())
					if err != nil {
						return err
					}
					return a.showHost(b, set)
				}
				set, err := b.SetPolicy(ctx, p)
				if err != nil {
					return err
				}
				if err := a.warnUnlisted(ctx, b, set); err != nil {
					return err
				}
				return a.showPolicy(b, set)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.host, "host", false, "change the host's settings instead: --enabled, --interpreters, --network and --require")
	f.BoolVar(&p.enabled, "enabled", false, "the switch (--enabled=false turns it off)")
	f.StringSliceVar(&p.interpreters, "interpreters", nil, "extensions that the tenant may use, such as py,sh; with --host: py=/usr/bin/python3, or py=runtime:NAME[:/path] in a runtime")
	f.StringVar(&p.minTier, "min-tier", "", "least tier: process, sandbox, kernel, vm; empty: the grant's")
	f.StringVar(&p.network, "network", "", "what scripts may reach: none, or loopback, their own processes on 127.0.0.1, where host and tenant both allow it")
	f.StringSliceVar(&p.require, "require", nil, "walls that must stand, or nothing runs, by the names that doctor has, such as memory,processes; empty: the tier's alone")
	_ = cmd.RegisterFlagCompletionFunc("require", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return slices.DeleteFunc(gate.Walls(), func(w string) bool { return strings.Contains(w, ",") }), cobra.ShellCompDirectiveNoFileComp
	})
	f.DurationVar(&p.timeout, "timeout", 0, "of a run, such as 30s")
	f.StringVar(&p.arguments, "max-arguments", "", "size of a call's arguments, such as 64KiB")
	f.StringVar(&p.output, "max-output", "", "size of each output stream")
	f.StringVar(&p.inputs, "max-inputs", "", "size of all input files")
	f.StringVar(&p.outputs, "max-outputs", "", "size of all output files")
	f.IntVar(&p.outputFiles, "max-output-files", 0, "number of output files")
	f.StringVar(&p.memory, "memory", "", "of a run, where the executor can hold it; 4 MiB at least")
	f.IntVar(&p.processes, "processes", 0, "of a run, where the executor can hold it")
	f.BoolVar(&p.keep, "keep-arguments", false, "keep the text of arguments in the record of each call")
	f.StringArrayVar(&p.env, "env", nil, "NAME=VALUE that scripts see; NAME= takes it away (repeatable)")
	f.StringSliceVar(&p.secrets, "secret", nil, "names of --env whose values are masked in what scripts write and are not shown again; all of them, empty: none")
	return cmd
}

// warnUnlisted tells of the tenant's interpreters that the host does not list:
// their scripts are refused. A key of a tenant is not told.
func (a *app) warnUnlisted(ctx context.Context, b backend, p gate.Policy) error {
	host, err := b.Host(ctx)
	if errors.Is(err, access.ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, ext := range p.Interpreters {
		if _, listed := host.Interpreters[ext]; !listed {
			a.say("tracon: warning: the host's list has no interpreter for %s, so its scripts are refused; `tracon policy show --host` shows the list", ext)
		}
	}
	return nil
}

// apply changes the fields whose flags were given.
func (f policyFlags) apply(p *gate.Policy) error {
	if f.changed("enabled") {
		p.Enabled = f.enabled
	}
	if f.changed("interpreters") {
		p.Interpreters = slices.Compact(slices.Sorted(slices.Values(f.interpreters)))
	}
	if f.changed("min-tier") {
		p.MinTier = grant.Tier(f.minTier)
	}
	if f.changed("network") {
		p.Network = gate.Network(f.network)
	}
	if f.changed("require") {
		p.RequireWalls = f.require
	}
	if f.changed("timeout") {
		p.Timeout = f.timeout
	}
	if f.changed("max-output-files") {
		p.MaxOutputFiles = f.outputFiles
	}
	if f.changed("processes") {
		p.Processes = f.processes
	}
	if f.changed("keep-arguments") {
		p.KeepArguments = f.keep
	}
	if f.changed("secret") {
		p.Secrets = slices.Compact(slices.Sorted(slices.Values(f.secrets)))
	}
	err := f.sizes(func(flag string, n int64) {
		switch flag {
		case "max-arguments":
			p.MaxArguments = int(n)
		case "max-output":
			p.MaxOutput = int(n)
		case "max-inputs":
			p.MaxInputs = n
		case "max-outputs":
			p.MaxOutputs = n
		case "memory":
			p.Memory = n
		}
	})
	if err != nil {
		return err
	}
	return f.variables(func(name, value string) {
		if value == "" {
			p.Unset(name)
			return
		}
		if p.Environment == nil {
			p.Environment = map[string]string{}
		}
		p.Environment[name] = value
	})
}

// sizes calls set with each size that was given.
func (f policyFlags) sizes(set func(flag string, n int64)) error {
	for _, s := range []struct{ flag, text string }{
		{"max-arguments", f.arguments}, {"max-output", f.output}, {"max-inputs", f.inputs}, {"max-outputs", f.outputs}, {"memory", f.memory},
	} {
		if !f.changed(s.flag) {
			continue
		}
		n, err := config.ParseSize(s.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
		set(s.flag, n)
	}
	return nil
}

// variables calls set with each variable of --env; with an empty value it is to go.
func (f policyFlags) variables(set func(name, value string)) error {
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--env %s: write NAME=VALUE", pair)
		}
		set(name, value)
	}
	return nil
}

// wire is what the flags say, as a server is told.
func (f policyFlags) wire() (c client.PolicyChange, err error) {
	if f.changed("enabled") {
		c.Enabled = &f.enabled
	}
	if f.changed("interpreters") {
		c.Interpreters = new(slices.Compact(slices.Sorted(slices.Values(f.interpreters))))
	}
	if f.changed("min-tier") {
		c.MinTier = &f.minTier
	}
	if f.changed("network") {
		c.Network = &f.network
	}
	if f.changed("require") {
		c.RequireWalls = &f.require
	}
	if f.changed("timeout") {
		c.TimeoutSeconds = new(f.timeout.Seconds())
	}
	if f.changed("max-output-files") {
		c.MaxOutputFiles = &f.outputFiles
	}
	if f.changed("processes") {
		c.Processes = &f.processes
	}
	if f.changed("keep-arguments") {
		c.KeepArguments = &f.keep
	}
	if f.changed("secret") {
		c.Secrets = new(slices.Compact(slices.Sorted(slices.Values(f.secrets))))
	}
	err = f.sizes(func(flag string, n int64) {
		switch flag {
		case "max-arguments":
			c.MaxArguments = new(int(n))
		case "max-output":
			c.MaxOutput = new(int(n))
		case "max-inputs":
			c.MaxInputs = &n
		case "max-outputs":
			c.MaxOutputs = &n
		case "memory":
			c.Memory = &n
		}
	})
	if err != nil {
		return c, err
	}
	err = f.variables(func(name, value string) {
		if value == "" {
			c.Unset = append(c.Unset, name)
			return
		}
		if c.SetEnvironment == nil {
			c.SetEnvironment = map[string]string{}
		}
		c.SetEnvironment[name] = value
	})
	return c, err
}

// hostChange is what the flags say of the host's settings.
func (f policyFlags) hostChange() (c hostChange) {
	if f.changed("enabled") {
		c.enabled = &f.enabled
	}
	if f.changed("network") {
		c.network = new(gate.Network(f.network))
	}
	if f.changed("require") {
		c.require = &f.require
	}
	if f.changed("interpreters") {
		c.interpreters = map[string]string{}
		for _, pair := range f.interpreters {
			ext, text, _ := strings.Cut(pair, "=")
			c.interpreters[ext] = text
		}
	}
	return c
}
