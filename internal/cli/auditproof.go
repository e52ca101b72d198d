package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/strictjson"
)

func (a *app) auditProveCmd() *cobra.Command {
	var run string
	var all bool
	cmd := &cobra.Command{
		Use:   "prove [INDEX]",
		Short: "Write the receipt of an entry: what proves it to anybody",
		Long: `Writes the receipt of the entry INDEX, or of the admission of a call: the entry, the
hashes from it to the root of a checkpoint, and the signed checkpoint (C2SP
tlog-proof). Its holder needs neither this log nor anybody's word, only the public
key, to prove that the entry was written; and to show that the log was rolled
back, should the entry no longer be there.

Where a checkpoint covers the entry, nothing is written: it works on a copy that is
only read. Else the log is signed.`,
		Example: `  tracon audit prove 41 >receipt
  tracon audit prove --run 01991f3a-… --json
  tracon audit receipt check receipt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (run != "") {
				return usage(cmd, errors.New("name an INDEX, or a call with --run"))
			}
			prove := func(ctx context.Context, b backend) error {
				index, err := indexOf(ctx, b, args, run)
				if err != nil {
					return err
				}
				receipt, leaf, err := b.Prove(ctx, index, all)
				if errors.Is(err, audit.ErrNoEntry) && !all { // a server tells nobody of another tenant's
					return hint(err, "`tracon audit list` lists those of tenant %s; for another's name it with --tenant, or say --all-tenants", b.Tenant())
				}
				if err != nil {
					return err
				}
				if leaf.Entry.Tenant != b.Tenant() && !all { // a receipt holds the entry, and that is the tenant's own
					return hint(fmt.Errorf("entry %d is not of tenant %s", index, b.Tenant()), "name its tenant with --tenant, or say --all-tenants")
				}
				if a.json {
					return a.printJSON(struct {
						Entry   entryJSON `json:"entry"`
						Receipt string    `json:"receipt"`
					}{toEntryJSON(leaf), string(receipt)})
				}
				_, err = a.out.Write(receipt)
				return err
			}
			err := a.at(cmd, daemon.Read, prove)
			if !errors.Is(err, notary.ErrReadOnly) {
				return err
			}
			// No checkpoint covers it yet: where the log may be written it is signed now.
			if a.at(cmd, daemon.Change, prove) != nil {
				return hint(err, "`tracon audit checkpoint`, where the log may be written, signs it")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "the admission of this call")
	cmd.Flags().BoolVar(&all, "all-tenants", false, "an entry of any tenant, or of the host; on a server it takes a key of the platform")
	return cmd
}

func indexOf(ctx context.Context, b backend, args []string, run string) (uint64, error) {
	if len(args) == 1 {
		n, err := strconv.ParseUint(args[0], 10, 63)
		if err != nil {
			return 0, hint(fmt.Errorf("%q is no index of an entry", args[0]), "`tracon audit list` shows them")
		}
		return n, nil
	}
	c, _, err := b.Call(ctx, run)
	if err != nil {
		return 0, hint(err, "`tracon calls list` lists the calls of tenant %s", b.Tenant())
	}
	return c.AdmissionIndex, nil
}

// maxAnswer is the most bytes that the answer of a run may have, output and all.
const maxAnswer = 64 << 20

func (a *app) receiptCheckCmd() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:         "check FILE",
		Annotations: map[string]string{ownEyes: "yes"},
		Short:       "Check a receipt, and whether the log still has what it proves",
		Long: `Checks that the entry in the receipt stands in the tree of its checkpoint and that
the log's key has signed that, and then that the log still goes on from there. The
log is only read. FILE is what ` + "`tracon audit prove`" + ` wrote, or what ` + "`tracon run --json`" + ` did; - is standard input.

With --key it needs no log: the receipt alone is checked, against that key.

Exit codes: 0 it holds; 1 it could not be looked at; 3 altered: the receipt, or
the log, is not what was signed; 6 rolled back: the log is shorter than the
receipt; 7 unsigned: it has no signature of the key.`,
		Example: `  tracon run unit-converter scripts/convert.py --json >answer -- --value 1 --factor 2
  tracon audit receipt check answer
  tracon audit receipt check receipt --key tracon/01a2…+5e2f…+AX…`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.readAll(args[0], maxAnswer)
			if err != nil {
				return hint(err, "name what `tracon audit prove` or `tracon run --json` wrote; - is standard input")
			}
			if text, err = receiptIn(text); err != nil {
				return err
			}
			if key != "" {
				k, err := parseKey("--key", key)
				if err != nil {
					return err
				}
				leaf, c, err := openReceipt(text, k)
				return a.tellReceipt(leaf, c, err)
			}
			return a.at(cmd, daemon.Read, func(ctx context.Context, b backend) error {
				leaf, c, err := b.CheckReceipt(ctx, text)
				return a.tellReceipt(leaf, c, err)
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key of the log: check the receipt alone, without the log")
	return cmd
}

// receiptIn returns the receipt that a file holds: itself, or in the answer of a run.
func receiptIn(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return text, nil
	}
	_, v, err := strictjson.Decode(text, strictjson.Limits{})
	if err != nil {
		return nil, fmt.Errorf("the answer of a run: %w", err)
	}
	answer, _ := v.(map[string]any)
	log, _ := answer["audit"].(map[string]any)
	receipt, ok := answer["receipt"].(string) // of prove
	if !ok {
		receipt, _ = log["receipt"].(string)
	}
	if receipt == "" {
		return nil, errors.New("there is no receipt in this answer")
	}
	return []byte(receipt), nil
}

// provedBy returns the entry that the receipt proves.
func provedBy(p audit.Proof) (audit.Leaf, error) {
	e, at, err := p.Entry()
	return audit.Leaf{Index: p.Index, Hash: audit.LeafHash(p.Leaf), Seq: at.Seq, Entry: e}, err
}

// openReceipt opens a receipt that one of keys has signed.
func openReceipt(text []byte, keys ...audit.PublicKey) (audit.Leaf, audit.Checkpoint, error) {
	p, err := audit.OpenProof(text, keys...)
	if err != nil {
		return audit.Leaf{}, p.Checkpoint, err
	}
	leaf, err := provedBy(p)
	return leaf, p.Checkpoint, err
}

func (a *app) tellReceipt(leaf audit.Leaf, c audit.Checkpoint, err error) error {
	word, code := faultOf(err)
	if err == nil {
		code = 0
	}
	if a.json {
		result := struct {
			OK    bool       `json:"ok"`
			Fault string     `json:"fault,omitempty"`
			Error string     `json:"error,omitempty"`
			Entry *entryJSON `json:"entry,omitempty"`
			Size  uint64     `json:"size"` // of the checkpoint
		}{OK: err == nil, Fault: word, Size: c.Tree.Size}
		if err != nil {
			result.Error = err.Error()
		} else {
			result.Entry = new(toEntryJSON(leaf))
		}
		if perr := a.printJSON(result); perr != nil || code == 0 {
			return perr
		}
		return &exitWith{code, nil}
	}
	if err != nil {
		if word == "" {
			return err
		}
		fmt.Fprintf(a.out, "%s\n", a.paint(a.out, red, word))
		return &exitWith{code, err}
	}
	fmt.Fprintf(a.out, "ok: entry %d of the log %s, signed among %d\n", leaf.Index, c.Origin, c.Tree.Size)
	return a.pairs([][]string{{"time", leaf.Entry.Time.Format("2006-01-02T15:04:05.000000Z07:00")}, {"tenant", leaf.Entry.Tenant}, {"actor", leaf.Entry.Actor},
		{"kind", string(leaf.Entry.Kind)}, {"subject", leaf.Entry.Subject}, {"call", leaf.Entry.Run}, {"what", gist(leaf.Entry)}})
}

func (a *app) auditCheckpointCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint",
		Short: "Sign the log as it is now, and write the checkpoint",
		Long: `Signs the log as it is now and writes the checkpoint (a C2SP signed note): the
log's name, its size, its root. Keep it where nobody who can write to the data
folder can: it shows a log that was changed or rolled back since. Where nothing
was written since the last checkpoint, that one is written again.`,
		Example: `  tracon audit checkpoint >checkpoint
  tracon audit checkpoint --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.Change, func(ctx context.Context, b backend) error {
				c, keys, err := b.Checkpoint(ctx)
				if err != nil {
					return lost(err)
				}
				return a.tellCheckpoint(c, keys)
			})
		},
	}
}

func (a *app) tellCheckpoint(c audit.Checkpoint, keys []audit.PublicKey) error {
	if !a.json {
		_, err := a.out.Write(c.Note)
		return err
	}
	return a.printJSON(struct {
		Origin string            `json:"origin"`
		Size   uint64            `json:"size"`
		Root   audit.Hash        `json:"root"`
		Note   string            `json:"note"`
		Keys   []audit.PublicKey `json:"keys"` // the last one signed it
	}{c.Origin, c.Tree.Size, c.Tree.Root, string(c.Note), keys})
}

func (a *app) auditExportCmd() *cobra.Command {
	var f entryFilter
	var out string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the entries as JSON, one a line",
		Long: `Writes the entries of the tenant as JSON, one a line, the oldest first, each with
its leaf: the very bytes that are hashed, in base64. ` + "`tracon audit history`" + ` checks
such a file, without the log. It reads as it writes, so its memory does not grow
with the log.`,
		Example: `  tracon audit export >log.jsonl
  tracon audit export --all-tenants --from 1000 --out log.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.at(cmd, daemon.Read, func(ctx context.Context, b backend) (err error) {
				f.leaves = true
				w := a.out
				if out != "" {
					file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
					if err != nil {
						return hint(fmt.Errorf("--out: %w", err), "name a file that is not there yet, in a folder that is and that you can write to")
					}
					defer func() { err = errors.Join(err, file.Close()) }()
					w = file
				}
				bar := a.progress("entries written")
				defer bar.done()
				show := bar.show
				if out == "" && a.outTTY { // the entries themselves are on the terminal
					show = func(uint64) {}
				}
				return export(ctx, b, f, w, show)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&out, "out", "", "new file to write to (default: standard output)")
	return cmd
}

func export(ctx context.Context, b backend, f entryFilter, w io.Writer, show func(done uint64)) error {
	var done uint64
	for leaf, err := range b.Entries(ctx, f) {
		if err != nil {
			return err
		}
		if !f.takes(leaf.Entry) {
			continue
		}
		line, err := encodeExported(leaf)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		done++
		show(done)
	}
	return nil
}

// encodeExported writes a line of an export, without its end.
func encodeExported(leaf audit.Leaf) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(exportedJSON{toEntryJSON(leaf), base64.StdEncoding.EncodeToString(leaf.Bytes)})
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), err
}
