package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Long work without steps shows its seconds on a terminal alone, and takes them away.
func TestProgressDuring(t *testing.T) {
	tests := []struct {
		name      string
		tty, json bool
		want      bool
	}{
		{"terminal", true, false, true},
		{"pipe", false, false, false},
		{"JSON", true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				a := &app{err: &out, errTTY: tt.tty, json: tt.json}
				stop := a.progress("importing x").during()
				time.Sleep(2500 * time.Millisecond)
				stop()
				got := out.String()
				if !tt.want {
					if got != "" {
						t.Errorf("wrote %q", got)
					}
					return
				}
				if !strings.Contains(got, "importing x: 2 s") || !strings.HasSuffix(got, "\r\x1b[K") {
					t.Errorf("wrote %q", got)
				}
			})
		})
	}
}
