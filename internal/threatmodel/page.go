package threatmodel

import (
	"fmt"
	"slices"
	"strings"
)

// A Case is one of the hostile suite.
type Case struct{ ID, Title, Class, Wall string }

// Page returns the model as a page in Markdown.
func (m Model) Page(cases []Case) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("<!-- Made from internal/threatmodel/threatmodel.yaml by: go test ./internal/threatmodel -update. -->\n")
	p("# Threat model\n")
	p("Who may attack Tracon, what they could win, what is promised against whom, and which tests show it. A class such as `A3/HostLeak`")
	p("is an attacker and an impact: name it in a report (see SECURITY.md). A test fails when a promise has no row, when a row's evidence")
	p("does not exist in this build, or when this page is not what the file says.\n")
	p("`tracon doctor` says which walls stand on a host. A limit that the host cannot hold is named there, and the cases about it are")
	p("then printed as \"not promised\".\n")

	p("## Attackers\n")
	p("In the order of what they have in hand before they begin.\n")
	p("| id | attacker | has | such as |\n|---|---|---|---|")
	for _, a := range m.Attackers {
		p("| %s | %s | %s | %s |", a.ID, a.Name, a.Has, a.SuchAs)
	}
	p("\n## Impacts\n")
	p("| id | what was won |\n|---|---|")
	for _, i := range m.Impacts {
		p("| %s | %s |", i.ID, i.Means)
	}

	p("\n## What is promised\n")
	p("`P`: at every tier. `T1`: from the tier `sandbox` on. `D`: it shows afterwards, and is not prevented. `-`: not promised.")
	p("`later`: the door through which this attacker would win that is not built yet, so nothing is promised.\n")
	head, line := "| impact |", "|---|"
	for _, a := range m.Attackers {
		head, line = head+" "+a.ID+" |", line+"---|"
	}
	p("%s\n%s", head, line)
	var notes []string
	for _, r := range m.Matrix {
		row := "| " + r.Impact
		if r.Note != "" {
			notes = append(notes, r.Note)
			row += fmt.Sprintf(" (%d)", len(notes))
		}
		for _, a := range m.Attackers {
			row += " | " + r.Cells[a.ID]
		}
		p("%s |", row)
	}
	p("")
	for i, n := range notes {
		p("%d. %s", i+1, n)
	}
	p("\nNever promised:\n")
	for _, n := range m.Never {
		p("- %s", n)
	}

	p("\n## Threats\n")
	for _, t := range m.Threats {
		p("### %s: %s\n", t.ID, t.Title)
		if t.NotBuilt != "" {
			p("Not built yet (`%s`); nothing is promised.\n", t.NotBuilt)
			p("- **attackers**: %s", strings.Join(t.Attackers, ", "))
			p("- **what is to stand there**: %s\n", t.Control)
			continue
		}
		p("- **from**: %s, through %s", strings.Join(t.Attackers, ", "), t.Entry)
		p("- **to**: %s (%s)", t.Asset, strings.Join(t.Impacts, ", "))
		p("- **control**: %s (`%s`)", t.Control, strings.Join(t.Rooms, "`, `"))
		p("- **turned off by**: %s", t.OffBy)
		p("- **fails**: %s", t.Fails)
		p("- **evidence**: %s", strings.Join(evidence(t.Evidence), ", "))
		p("- **signal**: %s", t.Signal)
		p("- **left**: %s (%s)\n", t.Residual, t.Owner)
	}

	p("## Hostile cases\n")
	p("The cases of `executor/executortest/hostile`. Each runs on the executor, where nothing may get through, and on one without the")
	p("wall, where it must; in a sandbox that lacks one wall, the cases that are there for it turn red.\n")
	p("| case | what the script does | class | against the wall |\n|---|---|---|---|")
	for _, c := range cases {
		p("| %s | %s | %s | %s |", c.ID, c.Title, c.Class, c.Wall)
	}
	m.attacked(p, cases)
	p("\n## Attacks elsewhere\n")
	p("What no script can show by itself, or what other tests show already.\n")
	p("| attack | what happens | shown by | why not as a case |\n|---|---|---|---|")
	for _, a := range m.Elsewhere {
		p("| %s | %s | %s | %s |", a.ID, a.What, strings.Join(evidence(a.Evidence), ", "), a.Why)
	}
	return b.String()
}

// attacked says which case runs on which executor.
func (m Model) attacked(p func(string, ...any), cases []Case) {
	p("\n## Which case runs on which executor\n")
	p("The tests take from the file that this page is made of what to attack each executor with. `yes`: in every `./check`. `long`: in")
	p("`./check long`, which runs every case on every executor; in the others one case at least for each wall does. `-`: the executor does not")
	p("promise the wall. A number: the case would show something there that is no harm, or is shown by another test; see below the table.")
	p("What a kernel of the run's own makes or tells is no breach with runsc. Micro-VMs are attacked by `executor/microvm TestHostile`.\n")
	head, line := "| case |", "|---|"
	for _, a := range m.Attacked {
		head, line = head+" "+a.ID+" |", line+"---|"
	}
	p("%s\n%s", head, line)
	var notes []string
	for _, c := range cases {
		row := "| " + c.ID
		for _, a := range m.Attacked {
			cell := "yes"
			switch {
			case slices.Contains(a.Lacks, c.Wall):
				cell = "-"
			case a.Otherwise[c.ID] != "":
				if !slices.Contains(notes, a.Otherwise[c.ID]) {
					notes = append(notes, a.Otherwise[c.ID])
				}
				cell = fmt.Sprintf("(%d)", slices.Index(notes, a.Otherwise[c.ID])+1)
			case !a.Runs(c.ID, false):
				cell = "long"
			}
			row += " | " + cell
		}
		p("%s |", row)
	}
	p("")
	for i, n := range notes {
		p("%d. %s", i+1, n)
	}
	p("")
	for _, a := range m.Attacked {
		p("- %s: %s", a.ID, evidence([]string{a.Test})[0])
	}
}

func evidence(list []string) []string {
	var out []string
	for _, e := range list {
		room, test, ok := strings.Cut(e, " ")
		switch {
		case !ok:
			out = append(out, e)
		case room == ".":
			out = append(out, "`"+test+"`")
		default:
			out = append(out, "`"+e+"`")
		}
	}
	return out
}
