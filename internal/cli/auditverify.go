package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/daemon"
)

// Exit codes of `tracon audit verify` and `tracon audit receipt check`, besides 0
// and 1 for what could not be looked at.
const (
	exitAltered    = 3
	exitMissing    = 4
	exitTruncated  = 5
	exitRolledBack = 6
	exitUnsigned   = 7
)

// faults are what can be amiss with a log, by its word and exit code.
var faults = []struct {
	err  error
	word string
	code int
}{
	{audit.ErrUnsigned, "unsigned", exitUnsigned},
	{audit.ErrRolledBack, "rolled back", exitRolledBack},
	{audit.ErrTruncated, "truncated", exitTruncated},
	{audit.ErrMissing, "missing", exitMissing},
	{audit.ErrBroken, "altered", exitAltered},
	{audit.ErrProof, "altered", exitAltered},
}

// faultOf returns the word and the exit code for err; "" for what is no fault of the log.
func faultOf(err error) (word string, code int) {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f.word, f.code
		}
	}
	return "", exitError
}

// verifyJSON is what verify found.
type verifyJSON struct {
	OK     bool            `json:"ok"`
	Fault  string          `json:"fault,omitempty"` // altered, missing, truncated, rolled back, unsigned
	Error  string          `json:"error,omitempty"`
	Index  *uint64         `json:"index,omitempty"` // of the first bad entry
	Size   uint64          `json:"size"`
	Root   audit.Hash      `json:"root"`
	Signed uint64          `json:"signed"` // how many of the entries a checkpoint covers
	Claims int             `json:"checkpoints"`
	Key    audit.PublicKey `json:"key,omitempty"`
}

func (a *app) auditVerifyCmd() *cobra.Command {
	var against daemon.Against
	var key string
	cmd := &cobra.Command{
		Use:         "verify",
		Annotations: map[string]string{ownEyes: "yes"},
		Short:       "Compute the whole log again and compare it with what was signed",
		Long: `Computes the log again from its first leaf: that each has the hash that is kept for
it, stands at its place, follows its tenant's entry before it, and that all have
the root that is kept. Then it compares with every signed checkpoint that can be
reached: in the data folder, in the second folder, the high-water mark, and those
named with --checkpoints; and asks the witnesses. It names the first bad entry.

A copy is verified with --data: everything that is needed lies in the data
folder, and nothing there is changed; this user need not have the right to write.
With --alone, what lies elsewhere is left out and nobody is asked: an old backup is
behind that, and it works offline. Trust begins with the key that signed first; whoever can replace the whole
folder can replace that too, so keep it elsewhere and name it with --key.

Exit codes:
  0  the log adds up and is the one that was signed
  1  it could not be looked at
  3  altered: an entry, or its place, is not what was written
  4  missing: an entry or a checkpoint between others is gone
  5  truncated: the last entries are gone, and the database tells of more
  6  rolled back: it adds up, and a checkpoint tells of more entries
  7  unsigned: a signature is missing, or does not hold`,
		Example: `  tracon audit verify
  tracon audit verify --json
  tracon audit verify --data /mnt/copy/tracon --alone --key "$(head -n 1 tracon.pub)"
  tracon audit verify --checkpoints /mnt/other/01a2….checkpoints`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if key != "" {
				if against.Key, err = parseKey("--key", key); err != nil {
					return err
				}
			}
			here := ""
			if key != "" || against.Alone || len(against.Files) > 0 {
				here = "--key, --checkpoints and --alone are for a data folder of this machine"
			}
			return a.atHere(cmd, daemon.Verify, here, func(ctx context.Context, b backend) error {
				bar := a.progress("entries verified")
				v, err := b.VerifyLog(ctx, against, bar.show)
				bar.done()
				return a.tellVerified(v, err)
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key that signed first (default: that in the data folder)")
	cmd.Flags().StringArrayVar(&against.Files, "checkpoints", nil, "file of checkpoints that was kept elsewhere (repeatable)")
	cmd.Flags().BoolVar(&against.Alone, "alone", false, "leave out what lies outside of the data folder, and ask no witness: for a copy or an old backup, and offline")
	return cmd
}

// parseKey reads the public key that a flag names.
func parseKey(flag, text string) (audit.PublicKey, error) {
	k, err := audit.ParsePublicKey(text)
	if err != nil {
		return "", hint(fmt.Errorf("%s: %w", flag, err), "give the key itself, such as the first line of keys/log.pub in the log's data folder; `tracon audit checkpoint --json` has it too")
	}
	return k, nil
}

func (a *app) tellVerified(v audit.Verified, err error) error {
	word, code := faultOf(err)
	if a.json {
		result := verifyJSON{OK: err == nil, Fault: word, Size: v.Tree.Size, Root: v.Tree.Root, Signed: v.Signed, Claims: v.Claims, Key: v.Key}
		if err != nil {
			result.Error = err.Error()
			if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
				result.Index = &broken.Index
			}
		}
		if perr := a.printJSON(result); perr != nil {
			return perr
		}
		if err != nil {
			return &exitWith{code, nil}
		}
		return nil
	}
	switch {
	case err == nil:
		fmt.Fprintf(a.out, "ok: %d entries, root %s\n", v.Tree.Size, v.Tree.Root)
		if v.Tree.Size > 0 {
			fmt.Fprintf(a.out, "signed: %d of them, by %d checkpoints, key %s\n", v.Signed, v.Claims, v.Key)
		}
		return nil
	case word == "" && errors.Is(err, notary.ErrQuorum):
		return hint(err, "%s", remedyFor(err))
	case word == "":
		return err
	}
	fmt.Fprintf(a.out, "%s\n", a.paint(a.out, red, word))
	return &exitWith{code, hint(err, "%s", remedyOf(word))}
}

// remedyOf says what to do about a fault of the log.
func remedyOf(word string) string {
	switch word {
	case "rolled back", "truncated":
		return "keep the data folder as it is; if a newer backup is there, restore it, else `tracon audit accept-loss --reason …` after the inquiry"
	case "unsigned":
		return "if nobody has signed yet, `tracon audit checkpoint` does; else keep the data folder as it is, and look at who could write to it"
	}
	return "keep the data folder as it is, and compare it with a backup"
}
