package hostile

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// An Outcome is what came of a case on the executor.
type Outcome string

// The outcomes.
const (
	Safe        Outcome = "safe"
	Unsafe      Outcome = "UNSAFE"       // something got through
	Failed      Outcome = "FAILED"       // the probe did not do its work, so nothing is known
	NotPromised Outcome = "not promised" // the executor does not promise it; it was not run
	LeftOut     Outcome = "left out"     // there is no interpreter for it
)

// A Control is what came of a case where the wall is missing.
type Control string

// The controls.
const (
	Worked    Control = "worked"   // every attempt got through
	Broken    Control = "BROKEN"   // one did not: the case proves nothing
	NotHere   Control = "not here" // this host lacks what all of its attempts need
	NoControl Control = "none"     // there is no executor to run it on
)

// A Row is what came of a case.
type Row struct {
	ID       string   `json:"id"`
	Language string   `json:"language"` // of its script: "py", "sh"
	Title    string   `json:"title"`
	Class    string   `json:"class"` // attacker and impact, as docs/threat-model.md has them
	Wall     Wall     `json:"wall"`
	Must     string   `json:"must"` // what must hold
	Outcome  Outcome  `json:"outcome"`
	Control  Control  `json:"control"`
	Attempts int      `json:"attempts"`          // on the executor
	Worked   int      `json:"worked"`            // on the control: how many got through
	Windows  int      `json:"windows,omitempty"` // how often a race was won
	Through  []string `json:"through,omitempty"` // the attempts that got through
}

// Table returns the rows as a table for people, with their sums below.
func Table(rows []Row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ncase\tscript\toutcome\tattempts\tcontrol\tworked\tagainst\twhat it does")
	outcomes, controls := map[Outcome]int{}, map[Control]int{}
	attempts, worked := 0, 0
	for _, r := range rows {
		outcomes[r.Outcome]++
		controls[r.Control]++
		attempts += r.Attempts
		worked += r.Worked
		title := r.Title
		if r.Windows > 0 {
			title += fmt.Sprintf(" (%d races won)", r.Windows)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\n", r.ID, r.Language, r.Outcome, r.Attempts, r.Control, r.Worked, r.Wall, title)
	}
	w.Flush()
	fmt.Fprintf(&b, "%d scripts: %d safe, %d unsafe, %d failed, %d not promised, %d left out; %d attempts\n",
		len(rows), outcomes[Safe], outcomes[Unsafe], outcomes[Failed], outcomes[NotPromised], outcomes[LeftOut], attempts)
	fmt.Fprintf(&b, "controls: %d worked, %d broken, %d have nothing to work on here, %d without; %d attempts got through where the wall is missing\n",
		controls[Worked], controls[Broken], controls[NotHere], controls[NoControl], worked)
	return b.String()
}
