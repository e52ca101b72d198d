package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// lost adds to the error of a log that was lost what to do about it. A key of a wrong
// mode is not lost, and its error says what to do.
func lost(err error) error {
	if errors.Is(err, ownfile.ErrPrivate) {
		return err
	}
	if errors.Is(err, notary.ErrLoss) || errors.Is(err, notary.ErrKey) {
		return hint(err, "`tracon audit verify` says more; restore a newer backup, or, after the inquiry, `tracon audit accept-loss --reason …`")
	}
	return err
}

func (a *app) acceptLossCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "accept-loss",
		Short: "Take the log as it is, after entries of it were lost",
		Long: `A log that is shorter than what was signed, or another one, runs nothing. This
takes it as it is: an entry says who did so, why, and what was lost, by size, root and
key; the checkpoints that do not fit are put aside under another name, as evidence;
and what there is is signed.

Where the key is gone, or where a witness or a second folder to which this user can
only add goes on telling of what was lost, a new key is made, with a new name of the
log: give it to the witnesses. Receipts of what was lost go on telling of it.

It works on the data folder of this machine alone: a server on such a log does not
start, and one that finds the loss while it serves refuses every run. Stop it first,
and start it when the loss is accepted.`,
		Example: `  tracon audit accept-loss --reason 'the disk failed on Sunday; the backup is of Saturday'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage(cmd, errors.New("say why with --reason"))
			}
			return a.house(cmd, func(ctx context.Context, h *daemon.House) error {
				c, err := h.Notary.AcceptLoss(ctx, a.who(), reason)
				if errors.Is(err, notary.ErrNoLoss) {
					return hint(err, "`tracon audit verify` verifies the whole log")
				}
				if err != nil && c.IsZero() {
					return err
				}
				a.say("tracon: the loss is accepted, and stands in the log; what there is is signed:")
				keys, kerr := h.Notary.Keys()
				if kerr = errors.Join(kerr, a.tellCheckpoint(c, keys)); kerr != nil {
					return kerr
				}
				if errors.Is(err, notary.ErrQuorum) { // the log perhaps has a new name, of which the witnesses know nothing
					return hint(err, "give the witnesses the log's key, which is the last line of %s: nothing runs until they cosign", filepath.Join(h.Config.Data, "keys", "log.pub"))
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log; required")
	return cmd
}

func (a *app) rotateKeyCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Replace the key that signs the log",
		Long: `Signs the log with the old key, makes a new one, and writes into the log a statement,
signed by both, that the new one goes on. The old one is then removed. Whoever
trusts the first key follows from hand to hand.

On a server it takes a key of the platform, and it is the server's own log.`,
		Example: `  tracon audit rotate-key --reason 'a year has passed'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				key, err := b.RotateLogKey(ctx, reason)
				if err != nil {
					return lost(err)
				}
				if a.json {
					return a.printJSON(map[string]any{"key": key})
				}
				fmt.Fprintf(a.out, "the log is signed by %s from now on\n", key)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	return cmd
}
