package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/toolset"
)

// T11, W03: who guesses until no credential of his machine is looked at does not keep
// what his revoked key has open, nor does who keeps everybody from finding out; but a
// store that is away for a while ends nothing.
func TestLooksAgainHoweverManyFailed(t *testing.T) {
	operator := access.Principal{Tenant: "acme", Actor: "bot", Key: "1", Roles: []access.Role{access.Operator}}
	away := errors.New("the store is away")
	for _, tt := range []struct {
		name  string
		again func(look int) (known bool, err error)
		ends  int // at which look; zero: never
	}{
		{"it holds", func(int) (bool, error) { return true, nil }, 0},
		{"it is revoked", func(int) (bool, error) { return false, nil }, 1},
		{"it is revoked while the store is away", func(n int) (bool, error) {
			if n < 5 {
				return false, away
			}
			return false, nil
		}, 5},
		{"the store is away now and then", func(n int) (bool, error) {
			if n%mostUnknown == 0 {
				return true, nil
			}
			return false, away
		}, 0},
		{"nobody finds out any more", func(int) (bool, error) { return false, away }, mostUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				h, err := New(Config{Tools: new(toolset.Toolset), Logger: slog.New(slog.DiscardHandler),
					Authenticate: func(*http.Request) (access.Principal, bool, error) {
						return access.Principal{}, false, &access.TooManyError{After: time.Second}
					},
					Again: func(*http.Request) (access.Principal, bool, error) {
						looks++
						known, err := tt.again(looks)
						return operator, known, err
					}})
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				ctx, stop := context.WithTimeout(t.Context(), 5*mostUnknown*lookAgain+time.Second)
				defer stop()
				ended := 0
				stillThere(ctx, h.stillMay(httptest.NewRequest("POST", "/mcp", nil), operator, access.WriteRuns), func() { ended = looks })
				if ended != tt.ends {
					t.Errorf("it ended at the look %d of %d, want %d", ended, looks, tt.ends)
				}
			})
		})
	}
}
