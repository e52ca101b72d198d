package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// A style is how a word looks on a terminal. It is an escape sequence, so it is
// put around text that was made harmless before, never into it.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	reset        = "\x1b[0m"
)

// paint puts the style around s where w is a terminal that shows colours. The
// variable NO_COLOR, of any value, and a TERM of "dumb" switch them off (see
// no-color.org).
func (a *app) paint(w io.Writer, st style, s string) string {
	tty := w == a.out && a.outTTY || w == a.err && a.errTTY
	if st == plain || s == "" || !tty || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return string(st) + s + reset
}

// table writes rows in columns; with heading, the first row is one. On a
// terminal the last column is cut to its width, so that a row stays a line; what
// goes into a file or a pipe is whole. Cells are made harmless.
func (a *app) table(rows [][]string) error { return a.styled(rows, true, nil) }

// pairs writes rows of a name and a value, each value whole.
func (a *app) pairs(rows [][]string) error { return a.styled(rows, false, nil) }

func (a *app) styled(rows [][]string, heading bool, look func(row, column int) style) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = harmless(cell, false)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	room := 0
	if a.outTTY {
		room = a.width()
	}
	var b strings.Builder
	for n, row := range rows {
		used := 0
		for i, cell := range row {
			st := plain
			if heading && n == 0 {
				st = bold
			} else if look != nil {
				st = look(n, i)
			}
			if i == len(row)-1 {
				b.WriteString(a.paint(a.out, st, cut(cell, room-used)))
				break
			}
			b.WriteString(a.paint(a.out, st, cell))
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			used += widths[i] + 2
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

// cut shortens s to most runes. Below 20 it is left whole: a column that narrow
// says nothing.
func cut(s string, most int) string {
	if most < 20 || utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:most-1]) + "…"
}

func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 0
}

// progress shows how far long work is, in one line on standard error, where that
// is a terminal: it begins after half a second and is taken away at the end.
type progress struct {
	a     *app
	what  string
	start time.Time
	last  time.Time
}

func (a *app) progress(what string) *progress {
	return &progress{a: a, what: what, start: time.Now()}
}

func (p *progress) show(done uint64) {
	now := time.Now()
	if !p.a.errTTY || p.a.json || now.Sub(p.start) < 500*time.Millisecond || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	fmt.Fprintf(p.a.err, "\r\x1b[K%s: %d (%.0f/s)", p.what, done, float64(done)/now.Sub(p.start).Seconds())
}

// during shows how long the work takes, for work that tells no steps, until the
// function that it returns is called.
func (p *progress) during() (stop func()) {
	if !p.a.errTTY || p.a.json {
		return func() {}
	}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case p.last = <-tick.C:
				fmt.Fprintf(p.a.err, "\r\x1b[K%s: %.0f s", p.what, p.last.Sub(p.start).Seconds())
			}
		}
	}()
	return func() {
		close(over)
		<-gone
		p.done()
	}
}

func (p *progress) done() {
	if !p.last.IsZero() {
		fmt.Fprint(p.a.err, "\r\x1b[K")
	}
}
