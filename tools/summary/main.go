// Summary reads what "go test -json" writes and prints what a person wants of
// it: a line for each package, all that a failed test wrote, and the tests that
// were skipped, each with its reason. A test that skips itself says nothing
// otherwise, and a check that leaves things out must name them.
//
// With -skips FILE it also writes the names of the skipped tests into a file,
// one a line, sorted.
//
// It exits with 1 where a test or a package failed, and where no test ran: "ok"
// about nothing is no news.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
)

func main() {
	skips := flag.String("skips", "", "write the names of the skipped tests to this `file`")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	t := newTally(out)
	err := t.read(os.Stdin)
	ok := t.close()
	if err == nil {
		err = out.Flush()
	}
	if err == nil && *skips != "" {
		err = os.WriteFile(*skips, t.skipList(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}
