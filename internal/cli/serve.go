package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// firstKeyFile is where in the data folder the first key stands, where nobody sits
// before a terminal: what is printed elsewhere is a log.
const firstKeyFile = "first.key"

func (a *app) serveCmd() *cobra.Command {
	inFleet := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the management API, runs, and /mcp for models",
		Long: `Serves the management API, runs and, at /mcp, models, until an interrupt or SIGTERM. It then takes no more runs, waits for those under way (drain), stops the
others, and ends when what came of each is written. SIGHUP has it read the
configuration again, all of it or nothing.

It listens on this machine alone unless the configuration says otherwise, and in the
data folder at a socket, through which who may use that folder does there what the
verbs do. Everybody else needs a key. The first one, of the platform, is made at the
first start: printed where there is a terminal, else written to ` + firstKeyFile + ` in the
data folder. Whoever has read it removes that file.

What it is told stands in the configuration; ` + "`tracon config print`" + ` shows it. What must not
be is said at the start, all of it at once. Its log is JSON, on standard error.`,
		Example: `  tracon serve
  tracon serve --fleet
  TRACON_LISTEN=127.0.0.1:9000 tracon --config /etc/tracon.yaml serve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load()
			if err != nil {
				return err
			}
			if c.Server != "" {
				return hint(fmt.Errorf("the setting server names %s, and serve is a server itself", c.Server), "take --server, or TRACON_SERVER, away")
			}
			load := func() (*config.Config, error) {
				c, err := a.load()
				if err == nil && inFleet {
					c.UseFleet()
				}
				return c, err
			}
			if c, err = load(); err != nil {
				return err
			}
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			hurry, calm := toldTwice()
			defer calm()
			err = daemon.Serve(cmd.Context(), c, daemon.ServeOptions{
				Load: load, Reload: reload, Hurry: hurry, Version: version().Version,
				Logger:  slog.New(slog.NewJSONHandler(a.err, nil)),
				Started: func(s daemon.Started) error { return a.started(c.Data, s) },
			})
			if u, ok := errors.AsType[*daemon.UnsafeError](err); ok {
				fmt.Fprintln(a.err, a.paint(a.err, red, "tracon:"), "serve does not start as it is told:")
				for _, p := range u.Problems {
					a.say("  - %s", p)
				}
				return &exitWith{exitError, nil}
			}
			return lost(err)
		},
	}
	cmd.Flags().BoolVar(&inFleet, "fleet", false, "run scripts by runners that join here, at fleet_listen or "+config.DefaultFleetListen)
	return cmd
}

// toldTwice returns a channel that is closed when the program has been told twice to
// stop. The next time ends it at once, as if nobody listened.
func toldTwice() (<-chan struct{}, func()) {
	twice, came, over := make(chan struct{}), make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(came)
		for range 2 {
			select {
			case <-came:
			case <-over:
				return
			}
		}
		close(twice)
	}()
	return twice, func() { close(over) }
}

// started says where the server listens, and hands the first key over.
func (a *app) started(data string, s daemon.Started) error {
	shown := struct {
		Address  string `json:"address,omitempty"`
		Metrics  string `json:"metrics,omitempty"`
		Socket   string `json:"socket,omitempty"`
		FirstKey string `json:"firstKeyFile,omitempty"`
	}{s.Address, s.Metrics, s.Socket, ""}
	onTerminal := a.outTTY && !a.json
	if s.First != nil && !onTerminal {
		shown.FirstKey = filepath.Join(data, firstKeyFile)
		if err := ownfile.Write(shown.FirstKey, []byte(s.First.Reveal()+"\n")); err != nil {
			return fmt.Errorf("the first key: %w; revoke it, and make another with `tracon key create`", err)
		}
	}
	if a.json {
		return a.printJSON(shown)
	}
	for _, line := range [][2]string{{"serving at", s.Address}, {"metrics at", s.Metrics}, {"socket", s.Socket}, {"the platform's first key is in", shown.FirstKey}} {
		if line[1] != "" {
			fmt.Fprintf(a.out, "%s %s\n", line[0], harmless(line[1], true))
		}
	}
	if s.First != nil && onTerminal {
		fmt.Fprintf(a.out, "the platform's first key, which is shown this once:\n%s\n", s.First.Reveal())
	}
	return nil
}
