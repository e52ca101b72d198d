package daemon_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// TestVerifyByAKeyThatSignedNothing: B7, who names a key gets no yes for a log that
// nobody signed with it, not even for one without entries.
func TestVerifyByAKeyThatSignedNothing(t *testing.T) {
	c := config.Config{Data: t.TempDir(), Store: config.Sqlite}
	h, err := daemon.Open(t.Context(), &c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	key, err := audit.NewSigningKey("tracon/another")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := h.VerifyLog(t.Context(), daemon.Against{Alone: true}, nil); err != nil || v.Tree.Size != 0 {
		t.Fatalf("a log without entries: size %d, error %v", v.Tree.Size, err)
	}
	if _, err := h.VerifyLog(t.Context(), daemon.Against{Alone: true, Key: key.Public()}, nil); !errors.Is(err, audit.ErrUnsigned) {
		t.Errorf("a log without entries, by a key: %v, want audit.ErrUnsigned", err)
	}
}
