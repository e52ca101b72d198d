package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tracon-go/tracon/executor/interpreter"
	"golang.org/x/sys/unix"
)

// BenchmarkBackToBack starts Python scripts that do nothing one after the other,
// by one caller and by eight at once, without a rest: what is made ahead of a call
// is then paid for by the calls beside it. "processor" is the time of processors
// that this process and its children had for a start; what bubblewrap starts is no
// child that it waits for, and the kernel's own threads, which take namespaces away
// later, are in none.
func BenchmarkBackToBack(b *testing.B) {
	const ext, text = "py", "pass\n"
	found, err := interpreter.Find(b.Context(), ext)
	if err != nil {
		b.Fatal(err)
	}
	s := start{dir: b.TempDir(), env: []string{"PATH=" + interpreter.SearchPath, "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"}}
	s.argv = append(interpreter.Command(ext, found.Path), "main."+ext)
	if err := os.WriteFile(filepath.Join(s.dir, "main."+ext), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	what := script{found.Interpreter(), ext, text}
	all := []*contestant{s.bare(), boxed(b, "box", 0, what), boxed(b, "box-cold", -1, what)}
	bwrap, err := s.bubblewrap(b)
	switch {
	case err == nil:
		all = append(all, bwrap)
	case os.Getenv("TRACON_REQUIRE") == "all":
		b.Fatal(err)
	default:
		b.Logf("left out: %v", err)
	}
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			type sum struct{ wall, processor time.Duration }
			took := make([]sum, len(all))
			starts := 0
			for b.Loop() {
				starts += rowLength
				for i, c := range all {
					begin, used := time.Now(), processorTime(b)
					c.row(b, callers)
					took[i].wall += time.Since(begin)
					took[i].processor += processorTime(b) - used
				}
			}
			var table strings.Builder
			w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			fmt.Fprint(w, "\nstarted by\tx bare\tstarts a second\tprocessor\n")
			for i, c := range all {
				wall, processor := float64(took[i].wall)/float64(took[0].wall), float64(took[i].processor)/float64(took[0].processor)
				b.ReportMetric(wall, c.name+"-time")
				told := "not told"
				if c != bwrap {
					b.ReportMetric(processor, c.name+"-processor")
					told = fmt.Sprintf("%.2f", processor)
				}
				fmt.Fprintf(w, "%s\t%.2f\t%.0f\t%s\n", c.name, wall, float64(starts)/took[i].wall.Seconds(), told)
			}
			w.Flush()
			b.Log(table.String())
			b.ReportMetric(0, "ns/op") // of all together: it says nothing
		})
	}
}

// rowLength is how many starts a contestant makes before it is another's turn.
const rowLength = 48

// row makes the starts by so many callers at once.
func (c *contestant) row(b *testing.B, callers int) {
	b.Helper()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range rowLength / callers {
				if err := c.run(); err != nil {
					b.Errorf("%s: %v", c.name, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// processorTime returns what this process and its children that have ended used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var all time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}
