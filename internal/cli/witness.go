package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/witness"
)

func (a *app) witnessCmd() *cobra.Command {
	return group("witness", "Cosign the logs of others",
		`  tracon witness serve --folder witness --log "$(cat tracon.pub)"`,
		here(a.witnessServeCmd()))
}

func (a *app) witnessServeCmd() *cobra.Command {
	var folder, name, listen string
	var logs []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve as a witness for the logs of those keys",
		Long: `Cosigns checkpoints of the logs whose keys are named, by C2SP's tlog-witness protocol.
It signs only what goes on from what it saw last, and that is on its disk before
it answers: whoever asks it notices a log that was rolled back or split in two.

It must not be where the log is: best on another machine, with another operator.
It listens on this machine alone; put a proxy with TLS before it. What it prints
first is what the log's host writes into ` + "`witnesses`" + ` of its configuration.`,
		Example: `  tracon witness serve --folder witness --name witness.example.org --log "$(cat tracon.pub)"
  TRACON_WITNESSES='http://127.0.0.1:8790 witness.example.org+1f2e…+BA…' tracon run unit-converter scripts/convert.py`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case folder == "":
				return usage(cmd, errors.New("name its folder with --folder"))
			case len(logs) == 0:
				return usage(cmd, errors.New("name the logs that it shall cosign, by their keys, with --log"))
			}
			var keys []audit.PublicKey
			for _, text := range logs {
				k, err := parseKey("--log", text)
				if err != nil {
					return err
				}
				keys = append(keys, k)
			}
			folder, err := filepath.Abs(folder)
			if err != nil {
				return err
			}
			l, err := witness.Listen(listen)
			if err != nil {
				return err
			}
			s, err := witness.NewServer(folder, name, keys, slog.New(slog.NewTextHandler(a.err, nil)))
			if err != nil {
				return errors.Join(err, l.Close())
			}
			if a.json {
				if err := a.printJSON(map[string]string{"address": "http://" + l.Addr().String(), "key": s.Key().String()}); err != nil {
					return errors.Join(err, l.Close())
				}
			} else {
				fmt.Fprintf(a.out, "http://%s %s\n", l.Addr(), s.Key())
			}
			return s.Serve(cmd.Context(), l)
		},
	}
	f := cmd.Flags()
	f.StringVar(&folder, "folder", "", "folder of the witness's key and of what it saw; made where it is not there")
	f.StringVar(&name, "name", "witness", "name of the witness, when its key is made")
	f.StringVar(&listen, "listen", "127.0.0.1:8790", "address of this machine to listen at; port 0: any")
	f.StringArrayVar(&logs, "log", nil, "public key of a log to cosign (repeatable); after a rotation, the new one too")
	return cmd
}
