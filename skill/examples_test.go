package skill

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// interpreter returns the path of a program that an example is written for.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatalf("%s is missing, and TRACON_REQUIRE=all asks for it", name)
		}
		t.Skipf("%s is missing", name)
	}
	return p
}

// The example skills do what their SKILL.md says, in a private copy of the folder
// as a run has it.
func TestExamplesRun(t *testing.T) {
	const order = `{"currency":"EUR","customer":{"name":"Anna Berg","country":"DE"},
		"lines":[{"item":"Desk lamp","quantity":2,"price":"39.90"},{"item":"Chair","quantity":4,"price":"120.00","discount":{"kind":"percent","value":"10"}}],
		"discount":{"kind":"amount","value":"20.00"},"shipping":"express"}`
	const log = `203.0.113.7 - anna [12/Mar/2026:14:05:31 +0000] "GET /prices?x=1 HTTP/1.1" 200 5120
203.0.113.9 - - [12/Mar/2026:14:05:32 +0000] "GET /missing HTTP/1.1" 404 153 "-" "curl/8.5"
203.0.113.7 - - [12/Mar/2026:15:00:00 +0000] "GET /missing HTTP/1.1" 404 153
nothing of the kind
`
	const table = "\uFEFFcity;price;n\nBerlin;1.50;1\n\"Paris|x\";NA;3\nBerlin;1,000;1e999\n"
	tests := []struct {
		name, skill string
		words       []string // interpreter, script, arguments
		stdin       string
		input       string // inputs/in
		exit        int
		stdout      string
		output      string // a file below outputs/, and behind "=" what it holds
	}{
		{"a quote", "order-quote", []string{"python3", "scripts/quote.py"}, order, "", 0,
			`{"currency": "EUR", "lines": [{"item": "Desk lamp", "amount": "79.80"}, {"item": "Chair", "amount": "432.00"}], "subtotal": "511.80", "discount": "20.00", "shipping": "14.90", "taxRate": "0.19", "tax": "96.27", "total": "602.97"}` + "\n", ""},
		{"no order", "order-quote", []string{"python3", "scripts/quote.py"}, "{}", "", 1, "", ""},
		{"by status", "log-counts", []string{"sh", "scripts/count.sh", "status", "inputs/in"}, "", log, 0, "2\t404\n1\t200\n", ""},
		{"by path", "log-counts", []string{"sh", "scripts/count.sh", "-n", "1", "-s", "4", "path", "inputs/in"}, "", log, 0, "2\t/missing\n", ""},
		{"by hour", "log-counts", []string{"sh", "scripts/count.sh", "hour", "inputs/in"}, "", log, 0, "2\t12/Mar/2026:14\n1\t12/Mar/2026:15\n", ""},
		{"no such field", "log-counts", []string{"sh", "scripts/count.sh", "size", "inputs/in"}, "", log, 2, "", ""},
		{"no such log", "log-counts", []string{"sh", "scripts/count.sh", "status", "inputs/gone"}, "", log, 1, "", ""},
		{"a table", "csv-summary", []string{"python3", "scripts/summarize.py", "--delimiter", ";"}, "", table, 0, "3 rows, 3 columns; written to outputs/summary.md\n",
			"summary.md=| city | text | 3 | 0 | 2 different; Berlin (2), Paris\\|x (1) |\n| price | number | 2 | 1 | 1.5 to 1000, mean 500.75, median 500.75 |\n| n | text | 3 | 0 |"},
		{"a column as JSON", "csv-summary", []string{"python3", "scripts/summarize.py", "--delimiter", ";", "--columns", "price", "--format", "json"}, "", table, 0, "3 rows, 1 columns; written to outputs/summary.json\n",
			`summary.json="median": 500.75`},
		{"no such column", "csv-summary", []string{"python3", "scripts/summarize.py", "--columns", "x"}, "", table, 1, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Read(filepath.Join("../examples/skills", tt.skill), bundle.Limits{})
			must(t, err)
			folder := filepath.Join(t.TempDir(), tt.skill)
			must(t, WriteFolder(folder, s.Bundle))
			writeIn(t, folder, map[string]string{"inputs/in": tt.input})
			cmd := exec.CommandContext(t.Context(), interpreter(t, tt.words[0]), tt.words[1:]...)
			var stdout, stderr bytes.Buffer
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, strings.NewReader(tt.stdin), &stdout, &stderr
			if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.exit {
				t.Fatalf("got error %v, want exit code %d\n%s", err, tt.exit, stderr.String())
			}
			if stdout.String() != tt.stdout || tt.exit != 0 && stderr.Len() == 0 {
				t.Errorf("got %q, want %q\n%s", stdout.String(), tt.stdout, stderr.String())
			}
			if file, want, ok := strings.Cut(tt.output, "="); ok {
				got, err := os.ReadFile(filepath.Join(folder, "outputs", file))
				if err != nil || !strings.Contains(string(got), want) || strings.HasSuffix(file, ".json") && !json.Valid(got) {
					t.Errorf("got %q, error %v; want %q", got, err, want)
				}
			}
		})
	}
}
