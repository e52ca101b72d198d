package fleet

// Cut ends the member's link at once, as a crash of its process does.
func Cut(m *Member) { m.conn.Close() }
