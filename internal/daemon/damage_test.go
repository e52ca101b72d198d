package daemon_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/store"
)

// shown returns everything that a house shows, as text.
func shown(h *daemon.House) (string, error) {
	ctx := context.Background()
	v, err := h.Store.Survey(ctx)
	if err != nil {
		return "", err
	}
	defer v.Close()
	var b strings.Builder
	var errs []error
	tell := func(value any, err error) {
		text, jerr := json.Marshal(value)
		errs = append(errs, err, jerr)
		fmt.Fprintf(&b, "%s\n", text)
	}
	tip, err := v.Tip(ctx)
	tell([]any{tip.Size(), tip.Root()}, err)
	host, revision, err := v.HostAt(ctx)
	tell([]any{host, revision}, err)
	names, err := v.Tenants(ctx)
	tell(names, err)
	for _, name := range names {
		end, err := v.HistoryEnd(ctx, name)
		tell(end, err)
		p, revision, err := v.PolicyAt(ctx, name)
		tell([]any{p, revision}, err)
		for g, err := range v.Grants(ctx, name) {
			tell(g, err)
		}
		for version, err := range v.Versions(ctx, name) {
			tell(version, err)
		}
		for r, err := range v.Records(ctx, name) {
			tell([]any{r, hex.EncodeToString(r.ArgumentsSalt), r.Waited, r.Duration}, err)
		}
	}
	for leaf, err := range v.Leaves(ctx, "", 0) {
		tell([]any{leaf.Index, leaf.Tenant, leaf.Seq, leaf.Hash, leaf.Bytes}, err)
	}
	for d, err := range v.Contents(ctx) { // of each every byte was compared with it
		tell(d, err)
	}
	return b.String(), errors.Join(errs...)
}

// TestDamageAtRest: I1, I2, I6. Whatever happens to the bytes of a database that
// nobody has open, it is found when it is opened or by fsck, or does no harm: all
// that is shown is what was written. It is never shown changed in silence.
func TestDamageAtRest(t *testing.T) {
	db := lived(t)
	for n := range 16 {
		changed(t, db, fmt.Sprintf(`UPDATE leaf SET idx = idx WHERE idx = %d`, n)) // pages that are written again
	}
	whole, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	if len(whole)%page != 0 {
		t.Fatalf("the database has %d bytes, which are no pages of %d", len(whole), page)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, daemon.DatabaseFile)
	env := map[string]string{"HOME": dir, "TRACON_RUNTIME": filepath.Join(dir, "run")}
	c, err := config.Load(config.Source{Flags: map[string]string{"data": dir}, Getenv: func(k string) string { return env[k] }, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	// look opens the bytes as a database and says how their damage is found.
	look := func(data []byte) (found, text string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := daemon.Open(context.Background(), c, slog.New(slog.DiscardHandler))
		if err != nil {
			if !errors.Is(err, store.ErrUnusable) {
				t.Errorf("opening says %v, which does not say that an operator must act", err)
			}
			return "open", ""
		}
		defer func() { _ = h.Close(context.Background()) }() // what is damaged may not close either
		if _, err := h.Fsck(context.Background(), nil, func(f fsck.Finding) { found = "fsck" }); err != nil {
			return "fsck", ""
		}
		if found != "" {
			return found, ""
		}
		if text, err = shown(h); err != nil {
			return "reading", ""
		}
		return "", text
	}
	found, want := look(whole)
	if found != "" {
		t.Fatalf("in a sound database something is found by %s", found)
	}
	count := map[string]int{}
	try := func(name string, data []byte) {
		t.Helper()
		found, text := look(data)
		switch {
		case found != "":
			count[found]++
		case text == want:
			count["harmless"]++
		default:
			t.Errorf("%s: what is shown was changed in silence", name)
		}
	}
	flips, header, pages := 150, 1, 1 // pages is how many there are for each that is damaged
	switch {
	case os.Getenv("TRACON_FAULTS") == "full":
		flips, header = 20_000, 64
	case testing.Short():
		flips, pages = 30, 4
	}
	random := rand.New(rand.NewPCG(3, 4))
	flip := func(at, bit int) {
		data := bytes.Clone(whole)
		data[at] ^= 1 << bit
		try(fmt.Sprintf("bit %d of byte %d", bit, at), data)
	}
	for range flips {
		flip(random.IntN(len(whole)), random.IntN(8))
	}
	for at := 0; at < len(whole); at += pages * page {
		for i := range header {
			flip(at+i, random.IntN(8))
		}
		zero := bytes.Clone(whole)
		clear(zero[at : at+page])
		try(fmt.Sprintf("page %d is zero", at/page), zero)
		if at > 0 {
			swapped := bytes.Clone(whole)
			copy(swapped[at:at+page], whole[at-page:at])
			copy(swapped[at-page:at], whole[at:at+page])
			try(fmt.Sprintf("pages %d and %d are swapped", at/page-1, at/page), swapped)
			try(fmt.Sprintf("it ends before page %d", at/page), whole[:at])
			try(fmt.Sprintf("it ends in page %d", at/page), whole[:at+page/2])
		}
	}
	try("it is longer", append(bytes.Clone(whole), whole[:page]...))
	t.Logf("of %d pages: found when it is opened %d, by fsck %d, when it is read %d; harmless %d; in silence 0",
		len(whole)/page, count["open"], count["fsck"], count["reading"], count["harmless"])
	if count["open"] == 0 || count["fsck"] == 0 || count["harmless"] == 0 {
		t.Errorf("the sweep shows nothing: %v", count)
	}
}
