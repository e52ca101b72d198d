package fleet

import (
	"log/slog"

	"github.com/nats-io/nats.go"
)

// Cut ends the member's link at once, as a crash of its process does.
func Cut(m *Member) { m.conn.Close() }

// Dial makes the link of a control plane.
func (l Link) Dial() (*nats.Conn, error) {
	return l.dial("test", hostInbox, slog.New(slog.DiscardHandler))
}
