package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// examineLog looks at the log and at everything that proves it.
func (l *local) examineLog(ctx context.Context) []finding {
	h := l.h
	var findings []finding
	if v, err := h.VerifyLog(ctx, daemon.Against{}, nil); err != nil {
		findings = append(findings, finding{"log", false, err.Error(), remedyFor(err)})
	} else {
		findings = append(findings, finding{"log", true, fmt.Sprintf("%d entries add up, %d are signed", v.Tree.Size, v.Signed), ""})
	}
	findings = append(findings, anchors(h.Config))
	for _, w := range h.Witnesses() {
		f := finding{What: "witness " + w.Witness, OK: w.OK || !w.Objects && h.Config.WitnessQuorum == 0, Detail: cmp.Or(w.Detail, "vouches for the log, now")}
		if !w.OK {
			f.Remedy = "ask who runs it; nothing it says by itself is signed, and what it proves is told above"
		}
		findings = append(findings, f)
	}
	for _, p := range h.Notary.Places() {
		if p.Err == nil {
			continue
		}
		f := finding{What: p.Name, OK: false, Detail: p.Err.Error(), Remedy: "give this user the right to add to " + p.Path + ", or name another folder in the configuration"}
		if p.Required {
			f.Detail += "; nothing runs until it can be written"
		}
		findings = append(findings, f)
	}
	return append(findings, owners(h)...)
}

// owners looks at who may change what the log and its key lie in.
func owners(h *daemon.House) (findings []finding) {
	data := h.Config.Data
	for _, path := range []string{data, filepath.Join(data, "keys"), filepath.Join(data, daemon.DatabaseFile)} {
		if err := ownfile.CheckOwner(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // on PostgreSQL there is no file
			findings = append(findings, finding{"owner", false, err.Error(), "whoever can write there can write another log"})
		}
	}
	return findings
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

// remedyFor says what to do about an error of verifying.
func remedyFor(err error) string {
	switch word, _ := faultOf(err); {
	case word != "":
		return remedyOf(word)
	case errors.Is(err, notary.ErrQuorum):
		return "see that the witnesses answer; `tracon audit verify --alone` verifies without them"
	}
	return "mend what the sentence names"
}
