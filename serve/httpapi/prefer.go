package httpapi

import (
	"strconv"
	"strings"
	"time"
)

// A preference is what a Prefer header (RFC 7240) says of waiting. What it says of
// anything else is passed over, as that document asks.
type preference struct {
	async bool          // answer as soon as there is something to name
	wait  time.Duration // so long at most; below zero: until the end
}

// maxWait bounds what can be asked for; a run ends long before.
const maxWait = 24 * time.Hour

// parsePrefer reads the Prefer headers. Of a preference that stands twice the first
// counts.
func parsePrefer(headers []string) preference {
	p := preference{wait: -1}
	for _, word := range strings.Split(strings.Join(headers, ","), ",") {
		word, _, _ = strings.Cut(word, ";")
		name, value, has := strings.Cut(strings.TrimSpace(word), "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case name == "respond-async" && !has:
			p.async = true
		case name == "wait" && p.wait < 0:
			if n, err := strconv.ParseUint(value, 10, 31); err == nil {
				p.wait = min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return p
}

// detached reports whether the run goes on by itself when its caller leaves.
func (p preference) detached() bool { return p.async || p.wait >= 0 }

// limit is how long to wait for the end; below zero: until it comes.
func (p preference) limit() time.Duration {
	if p.async && p.wait < 0 {
		return 0
	}
	return p.wait
}
