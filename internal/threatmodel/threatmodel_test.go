//go:build linux

package threatmodel

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/executortest/hostile"
)

var update = flag.Bool("update", false, "write docs/threat-model.md")

const root = "../.."

func read(t *testing.T) Model {
	t.Helper()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The page is what the file says.
func TestPage(t *testing.T) {
	var cases []Case
	for _, c := range hostile.Cases() {
		cases = append(cases, Case{c.ID, c.Title, c.Class, string(c.Wall)})
	}
	page := filepath.Join(root, "docs/threat-model.md")
	want := read(t).Page(cases)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/threat-model.md is stale (%v); run: go test ./internal/threatmodel -update", err)
	}
}

// Every row names evidence that exists in this build, and every promise has a row.
func TestModel(t *testing.T) {
	for _, fault := range faults(read(t), house(t)) {
		t.Error(fault)
	}
}

// A building is what the rows are held to.
type building struct {
	rooms map[string]bool         // those with Go files
	tests map[string]bool         // "gate TestDenials"
	cases map[string]hostile.Case // of the hostile suite
}

// house looks at the repository.
func house(t *testing.T) building {
	t.Helper()
	b := building{map[string]bool{}, map[string]bool{}, map[string]hostile.Case{}}
	for _, c := range hostile.Cases() {
		b.cases[c.ID] = c
	}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, p)
		dir := filepath.ToSlash(filepath.Dir(name))
		if d.IsDir() {
			if d.Name() == "testdata" && dir != "cmd/tracon" || strings.HasPrefix(d.Name(), ".") && name != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if script, ok := strings.CutSuffix(d.Name(), ".txtar"); ok {
			b.tests["script "+script] = true
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		for r := dir; !b.rooms[r]; r = filepath.ToSlash(filepath.Dir(r)) {
			b.rooms[r] = true // and those around it
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) && fn.Name.Name != "TestMain" {
				b.tests[dir+" "+fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.tests) < 200 || len(b.cases) < 50 {
		t.Fatalf("%d tests and %d cases: this is not the repository", len(b.tests), len(b.cases))
	}
	return b
}

// faults returns what in the model does not hold.
func faults(m Model, b building) (list []string) {
	bad := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	var attackers, impacts []string
	for _, a := range m.Attackers {
		attackers = append(attackers, a.ID)
	}
	for _, i := range m.Impacts {
		impacts = append(impacts, i.ID)
	}
	promised := map[string]string{} // by class
	for _, r := range m.Matrix {
		if !slices.Contains(impacts, r.Impact) {
			bad("the matrix has an impact %q that is none", r.Impact)
		}
		for a := range r.Cells {
			if !slices.Contains(attackers, a) {
				bad("the matrix has an attacker %q that is none", a)
			}
		}
		for _, a := range attackers {
			cell := r.Cells[a]
			if !slices.Contains([]string{Promised, Tier1, Detected, None, Later}, cell) {
				bad("the cell %s/%s says %q", a, r.Impact, cell)
			}
			if _, ok := promised[a+"/"+r.Impact]; ok {
				bad("the cell %s/%s stands twice", a, r.Impact)
			}
			promised[a+"/"+r.Impact] = cell
		}
	}
	for _, i := range impacts {
		if _, ok := promised[attackers[0]+"/"+i]; !ok {
			bad("the matrix has no row for %s", i)
		}
	}

	held, used, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, t := range m.Threats {
		if ids[t.ID] || t.ID == "" || t.Title == "" || t.Control == "" || len(t.Attackers) == 0 {
			bad("%s: the row stands twice, or has no title, attacker or control", t.ID)
		}
		ids[t.ID] = true
		if t.NotBuilt != "" {
			if b.rooms[t.NotBuilt] {
				bad("%s: the room %q exists now: give the row its promises and its evidence", t.ID, t.NotBuilt)
			}
			if len(t.Evidence) > 0 || len(t.Impacts) > 0 || len(t.Rooms) > 0 {
				bad("%s: a row of a room that is not built promises nothing and shows nothing", t.ID)
			}
			continue
		}
		for what, text := range map[string]string{"asset": t.Asset, "entry": t.Entry, "turned_off_by": t.OffBy, "fails": t.Fails, "signal": t.Signal, "residual": t.Residual, "owner": t.Owner} {
			if text == "" {
				bad("%s: it has no %s", t.ID, what)
			}
		}
		if len(t.Rooms) == 0 || len(t.Impacts) == 0 {
			bad("%s: it has no room or no impact", t.ID)
		}
		for _, r := range t.Rooms {
			if !b.rooms[r] {
				bad("%s: there is no room %q", t.ID, r)
			}
		}
		if len(t.Evidence) == 0 {
			bad("%s: it has no evidence", t.ID)
		}
		var covers []string
		for _, a := range t.Attackers {
			for _, i := range t.Impacts {
				class := a + "/" + i
				covers = append(covers, class)
				switch promised[class] {
				case Promised, Tier1:
					held[class] = true
				case Detected:
				default:
					bad("%s: the cell %s says %q, so no row stands for it", t.ID, class, promised[class])
				}
			}
		}
		for _, e := range t.Evidence {
			c, isCase := b.cases[e]
			switch {
			case isCase:
				used[e] = true
				if !slices.Contains(covers, c.Class) {
					bad("%s: the case %s is of class %s, which the row is not about", t.ID, e, c.Class)
				}
			case !b.tests[e]:
				bad("%s: there is no test or case %q", t.ID, e)
			}
		}
	}
	for _, a := range m.Elsewhere {
		if _, isCase := b.cases[a.ID]; isCase || ids[a.ID] || a.ID == "" || a.What == "" {
			bad("the attack %q stands twice, is a case, or is not told", a.ID)
		}
		ids[a.ID] = true
		if len(a.Evidence) == 0 && a.Why == "" {
			bad("%s: it has neither evidence nor a reason", a.ID)
		}
		for _, e := range a.Evidence {
			if _, isCase := b.cases[e]; !isCase && !b.tests[e] {
				bad("%s: there is no test or case %q", a.ID, e)
			}
		}
	}
	var walls []string
	for _, w := range hostile.Walls() {
		walls = append(walls, string(w))
	}
	for _, a := range m.Attacked {
		if ids[a.ID] || a.ID == "" || !b.tests[a.Test] {
			bad("%s: it stands twice, or there is no test %q", a.ID, a.Test)
		}
		ids[a.ID] = true
		shown := slices.Clone(a.Lacks)
		for id, c := range b.cases {
			if a.Runs(id, false) || a.Otherwise[id] != "" {
				shown = append(shown, string(c.Wall))
			}
		}
		for _, w := range walls {
			if !slices.Contains(shown, w) {
				bad("%s: no case about the wall %q runs on it in every check", a.ID, w)
			}
		}
		for _, id := range slices.Concat(a.Often, slices.Collect(maps.Keys(a.Otherwise))) {
			if _, isCase := b.cases[id]; !isCase {
				bad("%s: there is no case %q", a.ID, id)
			}
		}
		for _, w := range a.Lacks {
			if !slices.Contains(walls, w) {
				bad("%s: there is no wall %q", a.ID, w)
			}
		}
	}
	for class, cell := range promised {
		if (cell == Promised || cell == Tier1) && !held[class] {
			bad("the promise %s has no row", class)
		}
	}
	for id := range b.cases {
		if !used[id] {
			bad("the case %s of the hostile suite belongs to no row", id)
		}
	}
	slices.Sort(list)
	return list
}

// Each rule of the file is held: a model that breaks it is found out.
func TestFaults(t *testing.T) {
	b := house(t)
	row := func(m *Model, id string) *Threat {
		return &m.Threats[slices.IndexFunc(m.Threats, func(t Threat) bool { return t.ID == id })]
	}
	for _, tc := range []struct {
		name string
		do   func(*Model)
		want string
	}{
		{"no evidence", func(m *Model) { row(m, "TM-20").Evidence = nil }, "TM-20: it has no evidence"},
		{"a test that is none", func(m *Model) { row(m, "TM-20").Evidence[0] = "gate TestNothing" }, `no test or case "gate TestNothing"`},
		{"a case that is none", func(m *Model) { row(m, "TM-03").Evidence[0] = "F99" }, `no test or case "F99"`},
		{"a case without a row", func(m *Model) { row(m, "TM-03").Evidence = row(m, "TM-03").Evidence[1:] }, "the case F01 of the hostile suite belongs to no row"},
		{"a case of another class", func(m *Model) { row(m, "TM-01").Evidence = append(row(m, "TM-01").Evidence, "F01") }, "which the row is not about"},
		{"a promise without a row", func(m *Model) { row(m, "TM-20").Attackers = []string{"A8"} }, "the promise A9/SecretLeak has no row"},
		{"a row without a promise", func(m *Model) { row(m, "TM-20").Attackers = []string{"A9", "A10"} }, "the cell A10/SecretLeak says \"-\""},
		{"an empty cell", func(m *Model) { m.Matrix[0].Cells = map[string]string{} }, "the cell A0/Escape says \"\""},
		{"an impact without a row", func(m *Model) { m.Matrix = m.Matrix[1:] }, "no row for Escape"},
		{"a room that is none", func(m *Model) { row(m, "TM-20").Rooms = []string{"cellar"} }, `no room "cellar"`},
		{"a room that was built", func(m *Model) { row(m, "TM-15").NotBuilt = "executor/process" }, `the room "executor/process" exists now`},
		{"a promise of a room that is not built", func(m *Model) { row(m, "TM-15").Evidence = []string{"F01"} }, "promises nothing"},
		{"an attack without evidence or reason", func(m *Model) { m.Elsewhere[0].Evidence, m.Elsewhere[0].Why = nil, "" }, "neither evidence nor a reason"},
		{"an attack by a test that is none", func(m *Model) { m.Elsewhere[0].Evidence = []string{"gate TestNothing"} }, `no test or case "gate TestNothing"`},
		{"an attack that is a case", func(m *Model) { m.Elsewhere[0].ID = "F01" }, "is a case"},
		{"an executor by a test that is none", func(m *Model) { m.Attacked[0].Test = "gate TestNothing" }, `no test "gate TestNothing"`},
		{"an executor with a case that is none", func(m *Model) { m.Attacked[0].Otherwise = map[string]string{"F99": "x"} }, `there is no case "F99"`},
		{"an executor without a wall that is none", func(m *Model) { m.Attacked[0].Lacks = []string{"moat"} }, `there is no wall "moat"`},
		{"a wall that is shown too seldom", func(m *Model) { m.Attacked[0].Often = []string{"F01"} }, `no case about the wall "memory" runs on it in every check`},
		{"no owner", func(m *Model) { row(m, "TM-20").Owner = "" }, "TM-20: it has no owner"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := read(t)
			tc.do(&m)
			got := faults(m, b)
			if !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, tc.want) }) {
				t.Errorf("got %q, want one with %q", got, tc.want)
			}
		})
	}
}
