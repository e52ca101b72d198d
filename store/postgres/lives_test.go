package postgres_test

import (
	"testing"

	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/slot"
)

// TestLives: I5, a host lives while its lease has not expired, whoever asks.
func TestLives(t *testing.T) {
	address := pgserver.New(t)
	h := join(t, address, "host", long, slot.Limits{})
	asks := open(t, address)
	defer asks.Close()
	look := func(id string, want bool) {
		t.Helper()
		if got, err := asks.Lives(t.Context(), id); err != nil || got != want {
			t.Errorf("that %q lives is %v, error %v; want %v", id, got, err, want)
		}
		// What a host whose lease has expired admitted is still its own.
		if got, err := asks.Joined(t.Context(), id); err != nil || got != (id == h.id) {
			t.Errorf("that %q has joined is %v, error %v", id, got, err)
		}
	}
	look(h.id, true)
	look("nobody", false)
	db := raw(t, address)
	if _, err := db.Exec(`UPDATE host_instance SET expires = 0`); err != nil {
		t.Fatal(err)
	}
	look(h.id, false)
}
