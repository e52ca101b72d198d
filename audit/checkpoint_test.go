package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
)

func newKey(t testing.TB) audit.SigningKey {
	t.Helper()
	k, err := audit.NewSigningKey("tracon/test")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func checkpoint(t testing.TB, k audit.SigningKey, tree audit.Tree) audit.Checkpoint {
	t.Helper()
	c, err := k.Checkpoint(tree)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fixedKey is a key that stays, for vectors.
const fixedKey = "PRIVATE+KEY+tracon/test+c1cf420f+ASYmVQIVkWK7vvhT5X0igJ2OzG7oGvbOAASJuBfPwBOM"

// fixedNext is one that it could be rotated to.
const fixedNext = "PRIVATE+KEY+tracon/test+d9bae446+AVBpnNl5ANzK2f4//oYDTfOPIsBktWg75Y9kIbrXIgXs"

// A key comes back from its text, and its secret is in no message.
func TestSigningKey(t *testing.T) {
	for range 50 { // base64 has a plus sign now and then
		k := newKey(t)
		back, err := audit.ParseSigningKey(k.Secret())
		if err != nil || back.Public() != k.Public() || back.Origin() != "tracon/test" || k.Public().Origin() != "tracon/test" {
			t.Fatalf("got %v, %v; want %v", back, err, k)
		}
		if s := fmt.Sprintf("%v %+v %s %s", k, k, k, k.LogValue()); strings.Contains(s, "PRIVATE") {
			t.Errorf("the secret is in %q", s)
		}
	}
	for _, bad := range []string{"", "x", "PRIVATE+KEY+a+00000000+AAAA", string(newKey(t).Public()), newKey(t).Secret() + "x"} {
		if _, err := audit.ParseSigningKey(bad); !errors.Is(err, audit.ErrKey) || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("ParseSigningKey(%q): got %v, want ErrKey without the text", bad, err)
		}
		if _, err := audit.ParsePublicKey(strings.ReplaceAll(bad, "tracon/test+", "tracon/test+0")); !errors.Is(err, audit.ErrKey) {
			t.Errorf("ParsePublicKey(%q): got %v, want ErrKey", bad, err)
		}
	}
	if _, err := audit.NewSigningKey("a name with blanks"); err == nil {
		t.Error("a name with blanks is taken")
	}
	if _, err := (audit.SigningKey{}).Checkpoint(audit.Tree{}); !errors.Is(err, audit.ErrKey) {
		t.Errorf("the zero key signs: %v", err)
	}
}

// C2SP: a checkpoint is read by whoever knows the key, and by nobody else; a
// changed byte shows.
func TestCheckpoint(t *testing.T) {
	k, other := newKey(t), newKey(t)
	want := audit.Tree{Size: 12345, Root: audit.LeafHash([]byte("x"))}
	c := checkpoint(t, k, want)
	got, err := audit.OpenCheckpoint(c.Note, other.Public(), k.Public(), k.Public())
	if err != nil || got.Tree != want || got.Origin != "tracon/test" || !bytes.Equal(got.Note, c.Note) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if lines := strings.Split(string(c.Note), "\n"); lines[0] != "tracon/test" || lines[1] != "12345" || lines[3] != "" || !strings.HasPrefix(lines[4], "— tracon/test ") {
		t.Errorf("its form is %q", c.Note)
	}
	for _, keys := range [][]audit.PublicKey{nil, {other.Public()}} {
		if got, err := audit.OpenCheckpoint(c.Note, keys...); !errors.Is(err, audit.ErrUnsigned) || !got.IsZero() {
			t.Errorf("with the keys %v: got %+v, %v; want ErrUnsigned", keys, got, err)
		}
	}
	for i := range c.Note {
		bent := slices.Clone(c.Note)
		bent[i] ^= 1
		if got, err := audit.OpenCheckpoint(bent, k.Public()); err == nil {
			t.Errorf("with byte %d changed it is read as %+v", i, got)
		} else if !errors.Is(err, audit.ErrUnsigned) && !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("with byte %d changed: got %v", i, err)
		}
	}
	// Another log's key signs no checkpoint of this one.
	stranger, err := audit.NewSigningKey("another")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenCheckpoint(checkpoint(t, stranger, want).Note, k.Public()); !errors.Is(err, audit.ErrUnsigned) {
		t.Errorf("another log's: got %v, want ErrUnsigned", err)
	}
}

func TestParseCheckpointRefuses(t *testing.T) {
	k := newKey(t)
	good := string(checkpoint(t, k, audit.Tree{Size: 7}).Note)
	for name, bad := range map[string]string{
		"nothing":          "",
		"no signature":     strings.SplitAfter(good, "\n\n")[0],
		"a size with zero": strings.Replace(good, "\n7\n", "\n07\n", 1),
		"a negative size":  strings.Replace(good, "\n7\n", "\n-7\n", 1),
		"a huge size":      strings.Replace(good, "\n7\n", "\n9223372036854775808\n", 1),
		"no size":          strings.Replace(good, "\n7\n", "\n\n", 1),
		"a short root":     strings.Replace(good, "AAAA=\n", "AAA=\n", 1),
		"too long":         strings.Replace(good, "\n\n", "\n"+strings.Repeat("x\n", audit.MaxNote/2)+"\n", 1),
	} {
		if c, err := audit.ParseCheckpoint([]byte(bad)); !errors.Is(err, audit.ErrCheckpoint) || !c.IsZero() {
			t.Errorf("%s: got %+v, %v; want ErrCheckpoint", name, c, err)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	k, err := audit.ParseSigningKey(fixedKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(checkpoint(f, k, audit.Tree{Size: 7}).Note)
	f.Add([]byte("tracon/test\n1\n\n— a AAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := audit.ParseCheckpoint(b)
		if err != nil {
			if !errors.Is(err, audit.ErrCheckpoint) {
				t.Errorf("got %v, want ErrCheckpoint", err)
			}
			return
		}
		if !bytes.Equal(c.Note, b) {
			t.Error("the note is not what was read")
		}
		if opened, err := audit.OpenCheckpoint(b, k.Public()); err == nil {
			signed := checkpoint(t, k, opened.Tree)
			if text, _, _ := bytes.Cut(b, []byte("\n\n")); !bytes.HasPrefix(signed.Note, text) {
				t.Errorf("opened what nobody signed: %q", b)
			}
		}
	})
}

// Rotation: the old key and the new one both sign; nothing else hands over.
func TestRotation(t *testing.T) {
	one, two, three := newKey(t), newKey(t), newKey(t)
	statement, err := one.Rotation(two)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := audit.CheckRotation(statement, one.Public()); err != nil || next != two.Public() {
		t.Errorf("got %s, %v; want the second key", next, err)
	}
	lines := strings.SplitAfter(statement, "\n")
	without := func(i int) string { return strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "") }
	for name, bad := range map[string]string{
		"of another key":        strings.ReplaceAll(statement, string(two.Public()), string(three.Public())),
		"only one signature":    without(5),
		"only the other":        without(6),
		"nothing":               "",
		"another domain":        strings.Replace(statement, "tracon/key-rotation/1", "tracon/key-rotation/2", 1),
		"a checkpoint":          string(checkpoint(t, one, audit.Tree{}).Note),
		"a line more":           strings.Replace(statement, "\n\n", "\nx\n\n", 1),
		"the other way":         func() string { s, _ := two.Rotation(one); return s }(),
		"signed by one of them": strings.Replace(statement, lines[6], lines[5], 1),
	} {
		if next, err := audit.CheckRotation(bad, one.Public()); !errors.Is(err, audit.ErrUnsigned) || next != "" {
			t.Errorf("%s: got %s, %v; want ErrUnsigned", name, next, err)
		}
	}
	stranger, err := audit.NewSigningKey("another")
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []audit.SigningKey{one, stranger, {}} {
		if _, err := one.Rotation(next); !errors.Is(err, audit.ErrKey) {
			t.Errorf("a rotation to %s: got %v, want ErrKey", next, err)
		}
	}
}

// kept is what somebody keeps: the checkpoints of some sizes, signed by k.
func kept(t *testing.T, l *ledger, k audit.SigningKey, sizes ...int) audit.Claims {
	t.Helper()
	var notes [][]byte
	for _, n := range sizes {
		f := after(t, l, n)
		notes = append(notes, checkpoint(t, k, audit.Tree{Size: f.Size(), Root: f.Root()}).Note)
	}
	return claims("somebody", notes...)
}

func claims(from string, notes ...[]byte) audit.Claims {
	return func(yield func(audit.Claim, error) bool) {
		for _, n := range notes {
			if !yield(audit.Claim{From: from, Note: n}, nil) {
				return
			}
		}
	}
}

// B7: what adds up by itself is compared with what others keep, and each way of
// not being the same has its own word.
func TestVerifyClaims(t *testing.T) {
	k, other := newKey(t), newKey(t)
	tests := []struct {
		name   string
		keep   func(t *testing.T, l *ledger) []audit.Claims
		tamper func(t *testing.T, l *ledger)
		want   error
		at     int // the first entry that may be bad; -1: none is named
	}{
		{"in order", func(t *testing.T, l *ledger) []audit.Claims {
			return []audit.Claims{kept(t, l, k, 0, 3, 12), kept(t, l, k, 7), kept(t, l, k)}
		}, func(*testing.T, *ledger) {}, nil, -1},
		{"the last entries cut", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 12)} },
			func(_ *testing.T, l *ledger) { l.rows = l.rows[:10] }, audit.ErrTruncated, 10},
		{"rolled back whole", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 5, 12)} },
			func(t *testing.T, l *ledger) { l.tip, l.rows = after(t, l, 10), l.rows[:10] }, audit.ErrRolledBack, -1},
		{"rolled back to nothing", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 12)} },
			func(t *testing.T, l *ledger) { l.tip, l.rows = audit.Frontier{}, nil }, audit.ErrRolledBack, -1},
		{"a row edited and hashed again", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 12)} },
			func(t *testing.T, l *ledger) { forge(t, l, 5) }, audit.ErrAltered, 8},
		{"everything from an entry on computed anew", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 4, 6, 12)} },
			func(t *testing.T, l *ledger) { rewrite(t, l, 5) }, audit.ErrAltered, 4},
		{"a checkpoint of more entries, signed by another", func(t *testing.T, l *ledger) []audit.Claims {
			return []audit.Claims{claims("x", checkpoint(t, other, audit.Tree{Size: 13}).Note)}
		}, func(*testing.T, *ledger) {}, audit.ErrUnsigned, -1},
		{"no checkpoint", func(*testing.T, *ledger) []audit.Claims { return nil }, func(*testing.T, *ledger) {}, audit.ErrUnsigned, -1},
		{"signed by another", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, other, 12)} },
			func(*testing.T, *ledger) {}, audit.ErrUnsigned, -1},
		{"no checkpoint at all", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{claims("x", []byte("x"))} },
			func(*testing.T, *ledger) {}, audit.ErrUnsigned, -1},
		{"checkpoints in another order", func(t *testing.T, l *ledger) []audit.Claims { return []audit.Claims{kept(t, l, k, 7, 3)} },
			func(*testing.T, *ledger) {}, audit.ErrAltered, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink, log := written(t, 12)
			keepers := tt.keep(t, sink)
			tt.tamper(t, sink)
			got, err := log.VerifyClaims(t.Context(), []audit.PublicKey{k.Public()}, nil, keepers...)
			if tt.want == nil {
				if err != nil || got.Tree.Size != 12 || got.Signed != 12 || got.Claims != 4 || got.Key != k.Public() {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, tt.want) || !errors.Is(err, audit.ErrBroken) {
				t.Fatalf("got %+v, %v; want %v", got, err, tt.want)
			}
			for _, kind := range []error{audit.ErrAltered, audit.ErrMissing, audit.ErrTruncated, audit.ErrRolledBack, audit.ErrUnsigned} {
				if kind != tt.want && errors.Is(err, kind) {
					t.Errorf("%v says %v too", err, kind)
				}
			}
			if b, ok := errors.AsType[*audit.BrokenError](err); ok != (tt.at >= 0) || ok && b.Index != uint64(tt.at) {
				t.Errorf("got %v, want it to name entry %d", err, tt.at)
			}
		})
	}
}

// rewrite edits row i and computes everything behind it anew: it adds up again.
func rewrite(t *testing.T, l *ledger, i int) {
	t.Helper()
	var entries []audit.Entry
	for n, row := range l.rows {
		e, _, err := audit.Decode(row.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if n == i {
			e.Subject += " edited"
		}
		entries = append(entries, e)
	}
	anew := &ledger{}
	log := audit.NewLog(anew)
	for _, e := range entries {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	l.rows, l.tip = anew.rows, anew.tip
	if _, err := audit.NewLog(l).Verify(t.Context(), nil); err != nil {
		t.Fatalf("what was computed anew does not add up: %v", err)
	}
}

// A key is followed from hand to hand, and the old one signs no more.
func TestVerifyClaimsRotation(t *testing.T) {
	one, two := newKey(t), newKey(t)
	sink, log := written(t, 4)
	statement, err := one.Rotation(two)
	if err != nil {
		t.Fatal(err)
	}
	rotate := audit.Entry{Tenant: "@host", Kind: audit.Keeping, Subject: "rotate", Facts: audit.Facts(audit.FactRotation, statement)}
	if _, err := log.Append(t.Context(), rotate); err != nil {
		t.Fatal(err)
	}
	before, late := kept(t, sink, one, 3), kept(t, sink, two, 5)
	if got, err := log.VerifyClaims(t.Context(), []audit.PublicKey{one.Public()}, nil, before, late); err != nil || got.Key != two.Public() {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, c := range map[string]audit.Claims{"the old key, afterwards": kept(t, sink, one, 5), "the new key, before": kept(t, sink, two, 3)} {
		if _, err := log.VerifyClaims(t.Context(), []audit.PublicKey{one.Public()}, nil, c); !errors.Is(err, audit.ErrUnsigned) {
			t.Errorf("%s: got %v, want ErrUnsigned", name, err)
		}
	}
	// A rotation that the key did not sign is found where it stands.
	third := newKey(t)
	rotate.Facts = audit.Facts(audit.FactRotation, func() string { s, _ := third.Rotation(two); return s }())
	if _, err := log.Append(t.Context(), rotate); err != nil {
		t.Fatal(err)
	}
	_, err = log.VerifyClaims(t.Context(), []audit.PublicKey{one.Public()}, nil, before)
	if b, ok := errors.AsType[*audit.BrokenError](err); !ok || b.Index != 5 || !errors.Is(err, audit.ErrUnsigned) {
		t.Errorf("a rotation by a stranger: got %v, want ErrUnsigned at entry 5", err)
	}
	if _, err := log.VerifyClaims(t.Context(), nil, nil); !errors.Is(err, audit.ErrUnsigned) {
		t.Errorf("without a root of trust: got %v", err)
	}
	if _, err := log.VerifyClaims(t.Context(), []audit.PublicKey{"x"}, nil); !errors.Is(err, audit.ErrKey) {
		t.Errorf("with what is no key: got %v", err)
	}
}

// Entries and claims that come while a log is verified are no fault.
func TestVerifyClaimsWhileTheLogGrows(t *testing.T) {
	k := newKey(t)
	sink, log := written(t, 5)
	notes := [][]byte{checkpoint(t, k, audit.Tree{Size: 5, Root: sink.tip.Root()}).Note}
	sink.reading = func() {
		sink.reading = nil
		if _, err := log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Host}); err != nil {
			t.Error(err)
		}
		notes = append(notes, checkpoint(t, k, audit.Tree{Size: 6, Root: sink.tip.Root()}).Note)
	}
	late := func(yield func(audit.Claim, error) bool) {
		for i := 0; i < len(notes); i++ {
			if !yield(audit.Claim{From: "x", Note: notes[i]}, nil) {
				return
			}
		}
	}
	v, err := log.VerifyClaims(t.Context(), []audit.PublicKey{k.Public()}, nil, late)
	if err != nil || v.Signed != 5 || v.Tree.Size != 5 {
		t.Errorf("got %+v, %v; want the 5 entries that were there", v, err)
	}
}

// A statement of a rotation has one reading.
func FuzzRotation(f *testing.F) {
	k, err := audit.ParseSigningKey(fixedKey)
	if err != nil {
		f.Fatal(err)
	}
	next, err := audit.ParseSigningKey(fixedNext) // a fuzzer's processes each come by here
	if err != nil {
		f.Fatal(err)
	}
	statement, err := k.Rotation(next)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(statement)
	f.Add("tracon/key-rotation/1\ntracon/test\n" + string(k.Public()) + "\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		to, err := audit.CheckRotation(s, k.Public())
		if err != nil {
			if !errors.Is(err, audit.ErrUnsigned) && !errors.Is(err, audit.ErrKey) || to != "" {
				t.Errorf("got %q, %v", to, err)
			}
			return
		}
		if to != next.Public() {
			t.Errorf("nobody signed a rotation to %s", to)
		}
	})
}
