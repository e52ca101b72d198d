package ticket

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

func keys(seed byte) (*Signer, ed25519.PublicKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	s, err := NewSigner(key)
	if err != nil {
		panic(err)
	}
	return s, key.Public().(ed25519.PublicKey)
}

var terms = Terms{Runner: "runner-1", Tenant: "acme", Run: "run-1", Digest: bundle.Sum([]byte("closure")), Request: bundle.Sum([]byte("request"))}

func claim() gate.Claim {
	return gate.Claim{Peer: "host", Tenant: terms.Tenant, Run: terms.Run, Digest: terms.Digest, Request: terms.Request}
}

// The form is frozen: a ticket of fixed terms, times and key is these bytes.
func TestGolden(t *testing.T) {
	s, _ := keys(1)
	got, err := s.seal(ticket{Terms: terms, signed: time.UnixMicro(1_700_000_000_000_000), ends: time.UnixMicro(1_700_000_120_000_000), nonce: [16]byte{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/ticket.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, _, _, err := read(got)
	if err != nil || back.Terms != terms || back.ends.Sub(back.signed) != 2*time.Minute {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// M10, M11: a ticket holds once, for its runner, peer, tenant, run, closure and request,
// in its time alone, and not across a restart of the runner.
func TestRedeem(t *testing.T) {
	s, public := keys(1)
	_, stranger := keys(2)
	change := func(f func(*gate.Claim)) gate.Claim { c := claim(); f(&c); return c }
	tests := []struct {
		name   string
		keys   map[string][]ed25519.PublicKey
		runner string
		claim  gate.Claim
		after  time.Duration // since it was signed
		spoil  func(string) string
		ok     bool
	}{
		{name: "as it was signed", ok: true},
		{name: "near its end", after: Life, ok: true},
		{name: "one of two keys", keys: map[string][]ed25519.PublicKey{"host": {stranger, public}}, ok: true},
		{name: "its time is over", after: Life + Skew},
		{name: "another runner's", runner: "runner-2"},
		{name: "a peer without keys", claim: change(func(c *gate.Claim) { c.Peer = "other" })},
		{name: "another peer's key", keys: map[string][]ed25519.PublicKey{"host": {stranger}, "other": {public}}},
		{name: "another tenant", claim: change(func(c *gate.Claim) { c.Tenant = "beta" })},
		{name: "another run", claim: change(func(c *gate.Claim) { c.Run = "run-2" })},
		{name: "another closure", claim: change(func(c *gate.Claim) { c.Digest[0]++ })},
		{name: "another request", claim: change(func(c *gate.Claim) { c.Request[0]++ })},
		{name: "a bit of what is signed", spoil: func(s string) string { return strings.Replace(s, "AAhydW5uZXIt", "AAhydW5uZXIu", 1) }},
		{name: "half", spoil: func(s string) string { return s[:len(s)/2] }},
		{name: "something behind it", spoil: func(s string) string { return s + "\n" }},
		{name: "nothing", spoil: func(string) string { return "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.keys == nil {
					tt.keys = map[string][]ed25519.PublicKey{"host": {public}}
				}
				if tt.runner == "" {
					tt.runner = "runner-1"
				}
				if tt.claim.Peer == "" {
					tt.claim = claim()
				}
				v, err := NewVerifier(tt.runner, tt.keys)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(Skew + time.Millisecond)
				text, err := s.Sign(terms)
				if err != nil {
					t.Fatal(err)
				}
				if tt.spoil != nil {
					spoiled := tt.spoil(text)
					if spoiled == text {
						t.Fatal("nothing was spoiled")
					}
					text = spoiled
				}
				time.Sleep(tt.after)
				err = v.Redeem(t.Context(), text, tt.claim)
				if (err == nil) != tt.ok || err != nil && !errors.Is(err, gate.ErrTicket) {
					t.Errorf("got %v, want ok %t", err, tt.ok)
				}
				if err := v.Redeem(t.Context(), text, tt.claim); !errors.Is(err, gate.ErrTicket) {
					t.Errorf("a second time: %v", err)
				}
			})
		})
	}
}

// M10: what was used before a runner was started anew is not used again, also where the
// host's clock is ahead of it.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, public := keys(1)
		time.Sleep(time.Second)
		now := time.Now()
		text, err := s.seal(ticket{Terms: terms, signed: now.Add(Skew), ends: now.Add(Skew + Life)})
		if err != nil {
			t.Fatal(err)
		}
		v, err := NewVerifier("runner-1", map[string][]ed25519.PublicKey{"host": {public}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := v.Redeem(t.Context(), text, claim()); !errors.Is(err, gate.ErrTicket) {
				t.Errorf("got %v", err)
			}
			time.Sleep(Skew)
		}
	})
}

// M10: a ticket of the future, or one that its signer lets hold for long, is none.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, public := keys(1)
		v, err := NewVerifier("runner-1", map[string][]ed25519.PublicKey{"host": {public}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for name, times := range map[string][2]time.Duration{"the future": {2 * Skew, Life}, "long": {0, Life + time.Second}, "no time": {0, 0}, "less than none": {0, -time.Second}} {
			now := time.Now()
			text, err := s.seal(ticket{Terms: terms, signed: now.Add(times[0]), ends: now.Add(times[0] + times[1])})
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Redeem(t.Context(), text, claim()); !errors.Is(err, gate.ErrTicket) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Of what is used no more is remembered than can be kept: then nothing more is taken,
// until the first of them are over.
func TestSpentIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, public := keys(1)
		v, err := NewVerifier("runner-1", map[string][]ed25519.PublicKey{"host": {public}})
		if err != nil {
			t.Fatal(err)
		}
		spend := func(i int) error {
			return v.spend("host", ticket{ends: time.Now().Add(Life), nonce: [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}}, time.Now())
		}
		for i := range MaxSpent {
			if err := spend(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := spend(MaxSpent); !errors.Is(err, gate.ErrTicket) {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(Life + Skew + time.Second)
		if err := spend(MaxSpent); err != nil || len(v.spent["host"]) != 1 {
			t.Errorf("later: %v, %d are remembered", err, len(v.spent["host"]))
		}
	})
}

// Zero is closed: no key signs nothing, no name is nobody's.
func TestZero(t *testing.T) {
	for _, s := range []*Signer{nil, {}} {
		if _, err := s.Sign(terms); err == nil {
			t.Error("a signer without a key signs")
		}
	}
	s, _ := keys(1)
	if _, err := s.Sign(Terms{}); !errors.Is(err, ErrForm) {
		t.Errorf("no terms: %v", err)
	}
	if _, err := NewVerifier("", nil); err == nil {
		t.Error("a runner without a name")
	}
	if _, err := NewVerifier("r", map[string][]ed25519.PublicKey{"host": {{1}}}); err == nil {
		t.Error("a key that is none")
	}
}

// M10, R21: when the keys change, those of before sign nothing any more, at once, and what
// was used stays used. A key that is none changes nothing.
func TestSetKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, first := keys(1)
		two, second := keys(2)
		v, err := NewVerifier("runner-1", map[string][]ed25519.PublicKey{"host": {first}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * Skew)
		sign := func(s *Signer) string {
			t.Helper()
			text, err := s.Sign(terms)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		redeem := func(text string, holds bool) {
			t.Helper()
			if err := v.Redeem(t.Context(), text, claim()); holds != (err == nil) || err != nil && !errors.Is(err, gate.ErrTicket) {
				t.Errorf("M10: %v, want that it holds: %t", err, holds)
			}
		}
		used := sign(one)
		redeem(used, true)
		redeem(sign(two), false)
		if err := v.SetKeys(map[string][]ed25519.PublicKey{"host": {second, first[:5]}}); err == nil {
			t.Error("a key that is none is taken")
		}
		redeem(sign(one), true)
		if err := v.SetKeys(map[string][]ed25519.PublicKey{"host": {second}}); err != nil {
			t.Fatal(err)
		}
		redeem(sign(one), false)
		redeem(sign(two), true)
		if err := v.SetKeys(map[string][]ed25519.PublicKey{"host": {first, second}}); err != nil {
			t.Fatal(err)
		}
		redeem(used, false)
	})
}

func TestKeys(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if der, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if got, err := ReadPrivateKey(private); err != nil || !got.Equal(key) {
		t.Errorf("got %v", err)
	}
	if got, err := ReadPublicKeys(append(public, public...)); err != nil || len(got) != 2 || !got[1].Equal(key.Public()) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range [][]byte{nil, []byte("x"), public, append(private, 'x'), private[:40]} {
		if _, err := ReadPrivateKey(text); err == nil {
			t.Errorf("%q is no private key", text)
		}
	}
	for _, text := range [][]byte{nil, []byte(" \n"), private, append(public, 'x'), public[:40]} {
		if _, err := ReadPublicKeys(text); err == nil {
			t.Errorf("%q holds no public keys", text)
		}
	}
}

// Of what is read, there is one text alone; what is not signed is never redeemed.
func FuzzRead(f *testing.F) {
	s, _ := keys(1)
	good, err := s.Sign(terms)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", prefix, prefix + ".", good, good + "=", good[:len(good)-1], strings.ToUpper(good)} {
		f.Add(text)
	}
	_, other := keys(2)
	v, err := NewVerifier("runner-1", map[string][]ed25519.PublicKey{"host": {other}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := v.Redeem(context.Background(), text, claim()); !errors.Is(err, gate.ErrTicket) {
			t.Fatalf("got %v", err)
		}
		back, payload, signature, err := read(text)
		if err != nil {
			if !errors.Is(err, ErrForm) {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := back.payload()
		if err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("%q is written as %x, %v", text, again, err)
		}
		if len(signature) != ed25519.SignatureSize {
			t.Fatal("no signature")
		}
	})
}
