package threatmodel

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/internal/strictyaml"
)

//go:embed threatmodel.yaml
var text []byte

// maxBytes is the most that the file may have.
const maxBytes = 256 << 10

// A Model is the whole of the file.
type Model struct {
	Attackers []Attacker `yaml:"attackers"`
	Impacts   []Impact   `yaml:"impacts"`
	Never     []string   `yaml:"never"` // what is promised to nobody
	Matrix    []Promises `yaml:"matrix"`
	Threats   []Threat   `yaml:"threats"`
	Elsewhere []Attack   `yaml:"elsewhere"` // that the hostile suite has no case for
	Attacked  []Attacked `yaml:"attacked"`
}

// An Attacker is somebody, by what they have in hand before they begin.
type Attacker struct {
	ID     string `yaml:"id"`
	Name   string `yaml:"name"`
	Has    string `yaml:"has"`
	SuchAs string `yaml:"such_as"`
}

// An Impact is what an attacker could win.
type Impact struct {
	ID    string `yaml:"id"`
	Means string `yaml:"means"`
}

// Promises are the cells of one impact.
type Promises struct {
	Impact string            `yaml:"impact"`
	Cells  map[string]string `yaml:"cells"` // by attacker; see the cells
	Note   string            `yaml:"note"`
}

// What a cell can say. A promise has a row that names its evidence.
const (
	Promised = "P"     // at every tier
	Tier1    = "T1"    // from the tier "sandbox" on
	Detected = "D"     // it shows afterwards, and is not prevented
	None     = "-"     // not promised
	Later    = "later" // the door that this attacker comes through is not built
)

// A Threat is a row: what stands between attackers and an asset.
type Threat struct {
	ID        string   `yaml:"id"`
	Title     string   `yaml:"title"`
	Rooms     []string `yaml:"rooms"`     // the packages that hold the control
	NotBuilt  string   `yaml:"not_built"` // the room that would; then there is no promise and no evidence
	Attackers []string `yaml:"attackers"`
	Impacts   []string `yaml:"impacts"`
	Asset     string   `yaml:"asset"`
	Entry     string   `yaml:"entry"`
	Control   string   `yaml:"control"`
	OffBy     string   `yaml:"turned_off_by"`
	Fails     string   `yaml:"fails"`
	Evidence  []string `yaml:"evidence"` // "F01", a case; "gate TestDenials", a test; "script grant", a script of the command line
	Signal    string   `yaml:"signal"`   // by what an operator sees it
	Residual  string   `yaml:"residual"` // what is left
	Owner     string   `yaml:"owner"`    // of what is left
}

// An Attack is one that everybody thinks of, and that no case of the hostile suite
// makes: other tests do, or the reason says why nothing can.
type Attack struct {
	ID       string   `yaml:"id"`
	What     string   `yaml:"what"`
	Evidence []string `yaml:"evidence"`
	Why      string   `yaml:"why"`
}

// An Attacked is an executor that the hostile suite attacks. Its test takes from here
// what to attack it with.
type Attacked struct {
	ID        string            `yaml:"id"`
	Test      string            `yaml:"test"`      // as evidence names it
	Lacks     []string          `yaml:"lacks"`     // the walls that it does not promise
	Often     []string          `yaml:"often"`     // the cases of every ./check; the others: ./check long. None: all
	Otherwise map[string]string `yaml:"otherwise"` // cases that would show something which is no harm: what
}

// Runs reports whether the executor is attacked with the case: in every ./check, or, with
// full, in ./check long.
func (a Attacked) Runs(id string, full bool) bool {
	return a.Otherwise[id] == "" && (full || len(a.Often) == 0 || slices.Contains(a.Often, id))
}

// Attack returns the executor of that name.
func (m Model) Attack(id string) (Attacked, error) {
	for _, a := range m.Attacked {
		if a.ID == id {
			return a, nil
		}
	}
	return Attacked{}, fmt.Errorf("threatmodel: nothing says how %q is attacked", id)
}

// Read returns the model of this build.
func Read() (Model, error) {
	var m Model
	err := strictyaml.Decode(text, maxBytes, &m)
	return m, err
}
