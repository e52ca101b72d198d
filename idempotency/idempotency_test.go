package idempotency_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/idempotency"
)

// A client's key is plain text of a bounded length: it goes into indexes and logs.
func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "01J9-~!", strings.Repeat("x", idempotency.MaxKey)} {
		if err := idempotency.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", strings.Repeat("x", idempotency.MaxKey+1), "a b", "a\n", "\x00", "\x7f", "ü", "\xff"} {
		if err := idempotency.CheckKey(key); !errors.Is(err, idempotency.ErrKey) {
			t.Errorf("%q: got %v", key, err)
		} else if strings.Contains(err.Error(), "\x00") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error holds it", key)
		}
	}
}

// Case 53, W14: another body is a conflict, done or not; the run that began is told to
// every later caller, and begun to itself alone.
func TestJudge(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	was := idempotency.Claim{Tenant: "t", Key: "k", Body: bundle.Sum([]byte("body")), Run: "first", At: at}
	second, other := was, was
	second.Run, second.At = "second", at.Add(time.Hour)
	other.Body = bundle.Sum([]byte("other"))
	for _, tt := range []struct {
		name string
		c    idempotency.Claim
		done bool
		want idempotency.Found
	}{
		{"itself", was, false, idempotency.Found{State: idempotency.Begun, Run: "first", Begun: at}},
		{"a second one", second, false, idempotency.Found{State: idempotency.Running, Run: "first", Begun: at}},
		{"a second one, when it is done", second, true, idempotency.Found{State: idempotency.Done, Run: "first", Begun: at, Answer: []byte("answer")}},
		{"itself, when it is done", was, true, idempotency.Found{State: idempotency.Done, Run: "first", Begun: at, Answer: []byte("answer")}},
		{"another body", other, false, idempotency.Found{State: idempotency.Conflict}},
		{"another body, when it is done", other, true, idempotency.Found{State: idempotency.Conflict}},
	} {
		if d := cmp.Diff(tt.want, idempotency.Judge(tt.c, was, tt.done, []byte("answer"))); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
}
