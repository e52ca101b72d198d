package broker

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// W03: whoever comes again and again does not fill the log: what is said of it is told at
// growing distances, and at once where it is new, or had stopped.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		l := &logs{to: slog.New(slog.NewTextHandler(&text, nil))}
		told := func() (times []string) {
			for line := range strings.Lines(text.String()) {
				_, n, _ := strings.Cut(strings.TrimSpace(line), "times=")
				times = append(times, n)
			}
			text.Reset()
			return times
		}
		come := func(n int, what string) {
			for i := range n {
				l.Errorf("127.0.0.1:%d - cid:%d - TLS handshake error: %s", 40000+i, i, what)
				time.Sleep(2 * time.Second)
			}
		}
		for _, tt := range []struct {
			name string
			n    int
			what string
			want []string
		}{
			{"again and again", 20, "bad certificate", []string{"1", "2", "4", "8", "16"}},
			{"something else", 1, "EOF", []string{"1"}},
			{"as before", 20, "bad certificate", []string{"32"}},
		} {
			come(tt.n, tt.what)
			if got := told(); !slices.Equal(got, tt.want) {
				t.Errorf("%s: told for the times %q, want %q", tt.name, got, tt.want)
			}
		}
		for _, at := range []string{"10.0.0.1", "10.0.0.2"} { // one does not hide the other
			for i := range 9 {
				l.Errorf("%s:%d - cid:%d - authentication error - Nkey %q", at, 40000+i, i, "UDXU"+at[7:])
			}
			if got := told(); !slices.Equal(got, []string{"1", "2", "4", "8"}) {
				t.Errorf("of %s is told for the times %q", at, got)
			}
		}
		time.Sleep(newAfter + time.Second)
		come(1, "bad certificate")
		if got := told(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("after a pause: told for the times %q, want that it is new", got)
		}
		for i := range 10 * mostSaid {
			l.Errorf("%s", strings.Repeat("x", i))
		}
		if n := len(l.said); n > mostSaid {
			t.Errorf("B10: %d sentences are counted, at most %d", n, mostSaid)
		}
		if got := len(told()); got != 10*mostSaid {
			t.Errorf("%d sentences are told, want each of %d", got, 10*mostSaid)
		}
		l.Fatalf("the end")
		if got := told(); len(got) != 1 {
			t.Errorf("the end is told %d times", len(got))
		}
	})
}
