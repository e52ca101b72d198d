package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// exportedJSON is a line of `tracon audit export`.
type exportedJSON struct {
	entryJSON
	Leaf string `json:"leaf"` // the bytes that are hashed, in base64
}

// maxExported is the most bytes of such a line: the most facts, each of the longest text.
const maxExported = 8 << 20

func (a *app) auditHistoryCmd() *cobra.Command {
	var receipts, keys []string
	cmd := here(&cobra.Command{
		Use:   "history FILE",
		Short: "Check a tenant's own history, as it was exported, without the log",
		Long: `Checks what ` + "`tracon audit export`" + ` wrote, without the log and without anybody's word:
that each entry has the hash that is told beside it, says what its line says, and
follows its tenant's entry before it, from the first one on. So a tenant checks its own history and
needs nothing of others. FILE - is standard input. An export that was made with a
filter (--kind, --from, …) has gaps, and is told as missing.

What adds up by itself may be cut short, or made up. A receipt that the tenant
has kept pins it to what was signed: its entry must be there, and so, by the
chain of hashes, is everything before it. It is checked against the public keys that --key
names.

Exit codes: 0 it adds up; 1 it could not be looked at; 3 altered; 4 missing: there
is a gap; 5 truncated: a receipt tells of a later entry; 7 unsigned: a receipt has
no signature of the keys.`,
		Example: `  tracon audit export --tenant acme --out log.jsonl
  tracon audit history log.jsonl
  tracon audit history log.jsonl --receipt receipt --key tracon/01a2…+5e2f…+AX…`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(receipts) == 0) != (len(keys) == 0) {
				return usage(cmd, errors.New("--receipt and --key belong together: a receipt is checked against the log's public key"))
			}
			proofs, err := a.openReceipts(receipts, keys)
			if err != nil {
				return a.tellHistory(audit.History{}, err)
			}
			r := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return hint(err, "name what `tracon audit export` wrote; - is standard input")
				}
				defer f.Close()
				r = f
			}
			bar := a.progress("entries checked")
			h, err := audit.VerifyHistory(exported(r, bar.show), proofs...)
			bar.done()
			if err == nil && h.Entries == 0 { // such as what a failed export left
				return hint(errors.New("there is no entry, so nothing was checked"), "name what `tracon audit export` wrote; - is standard input")
			}
			return a.tellHistory(h, err)
		},
	})
	cmd.Flags().StringArrayVar(&receipts, "receipt", nil, "file with a receipt, or the answer of `tracon run --json` (repeatable)")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public key of the log; after a rotation both (repeatable)")
	return cmd
}

// openReceipts opens the receipts of those files, each signed by one of keys.
func (a *app) openReceipts(files, texts []string) (proofs []audit.Proof, err error) {
	keys := make([]audit.PublicKey, len(texts))
	for i, text := range texts {
		if keys[i], err = parseKey("--key", text); err != nil {
			return nil, err
		}
	}
	for _, name := range files {
		text, err := a.readAll(name, maxAnswer)
		if err != nil {
			return nil, hint(err, "name what `tracon audit prove` or `tracon run --json` wrote")
		}
		if text, err = receiptIn(text); err != nil {
			return nil, err
		}
		p, err := audit.OpenProof(text, keys...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		proofs = append(proofs, p)
	}
	return proofs, nil
}

// exported yields the leaves of an export, and calls show with their number now and then.
func exported(r io.Reader, show func(uint64)) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxExported)
		n := uint64(0)
		for lines.Scan() {
			n++
			leaf, err := readExported(lines.Bytes())
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(leaf, err) || err != nil {
				return
			}
			show(n)
		}
		if err := lines.Err(); err != nil {
			yield(audit.Leaf{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}

// readExported reads a line of an export. What the line says in words must be what its
// leaf says: who reads the line goes by the words.
func readExported(line []byte) (audit.Leaf, error) {
	var told exportedJSON
	if err := strictjson.Unmarshal(line, &told); err != nil {
		return audit.Leaf{}, fmt.Errorf("not an exported entry: %w", err)
	}
	leaf := audit.Leaf{Index: told.Index, Tenant: told.Tenant, Seq: told.Seq, Hash: told.Hash}
	var err error
	if leaf.Bytes, err = base64.StdEncoding.Strict().DecodeString(told.Leaf); err != nil {
		return leaf, fmt.Errorf("not an exported entry: its leaf: %w", err)
	}
	if leaf.Entry, _, err = audit.Decode(leaf.Bytes); err != nil {
		return leaf, nil // the walk tells it, with its index
	}
	says, err := encodeExported(leaf)
	if err == nil && !bytes.Equal(says, bytes.TrimSpace(line)) {
		err = &audit.BrokenError{Index: leaf.Index, Err: fmt.Errorf("%w: its words are not what its leaf says", audit.ErrAltered)}
	}
	return leaf, err
}

func (a *app) tellHistory(h audit.History, err error) error {
	word, code := faultOf(err)
	if err != nil && word == "" {
		return err
	}
	if a.json {
		result := historyJSON{OK: err == nil, Fault: word, Entries: h.Entries, Proved: h.Proved, Tenants: []historyTenantJSON{}}
		for name, last := range h.Tenants {
			result.Tenants = append(result.Tenants, historyTenantJSON{name, last.Seq, last.Prev})
		}
		slices.SortFunc(result.Tenants, func(x, y historyTenantJSON) int { return bytes.Compare([]byte(x.Tenant), []byte(y.Tenant)) })
		if err != nil {
			result.Error = err.Error()
			if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
				result.Index = &broken.Index
			}
		}
		if perr := a.printJSON(result); perr != nil || err == nil {
			return perr
		}
		return &exitWith{code, nil}
	}
	if err != nil {
		fmt.Fprintf(a.out, "%s\n", a.paint(a.out, red, word))
		return &exitWith{code, hint(err, "export the whole history again and compare; keep this file, and ask the operator what became of the entry")}
	}
	fmt.Fprintf(a.out, "ok: %d entries of %d tenants follow one another from the first\n", h.Entries, len(h.Tenants))
	fmt.Fprintf(a.out, "signed: %d of them, by what the receipts prove\n", h.Proved)
	return nil
}

// historyJSON is what history found.
type historyJSON struct {
	OK      bool                `json:"ok"`
	Fault   string              `json:"fault,omitempty"` // altered, missing, truncated, unsigned
	Error   string              `json:"error,omitempty"`
	Index   *uint64             `json:"index,omitempty"` // of the first bad entry
	Entries uint64              `json:"entries"`
	Proved  uint64              `json:"proved"` // of them, that a receipt covers
	Tenants []historyTenantJSON `json:"tenants"`
}

// historyTenantJSON is where a tenant's history ends.
type historyTenantJSON struct {
	Tenant string     `json:"tenant"`
	Seq    uint64     `json:"seq"`
	Hash   audit.Hash `json:"hash"`
}
