package hostcase

import (
	"os"
	"testing"

	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/internal/threatmodel"
)

// Full reports whether everything is to be shown with each OCI runtime and each engine,
// as ./check long asks for. Otherwise the first of each is shown everything, and the
// others what differs with them.
func Full() bool { return os.Getenv("TRACON_ENGINES_FULL") == "yes" }

// Attacks returns what the threat model says of an executor: the walls that it does not
// promise, and the cases that it is attacked with now, without those by which a host
// could suffer where harmless is true.
func Attacks(t testing.TB, id string, harmless bool) (lacks []hostile.Wall, only []string) {
	t.Helper()
	m, err := threatmodel.Read()
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Attack(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range a.Lacks {
		lacks = append(lacks, hostile.Wall(w))
	}
	for _, c := range hostile.Cases() {
		if a.Runs(c.ID, Full()) && !(harmless && c.Hurts) {
			only = append(only, c.ID)
		}
	}
	return lacks, only
}

// Languages has a script for each language, by its extension, that prints 42.
var Languages = map[string]string{"sh": "echo $((6*7))\n", "py": "print(6*7)\n", "js": "console.log(6*7)\n"}
