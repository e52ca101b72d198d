package executortest

// A Dialect is a language in which the scripts of the cases are written.
type Dialect struct {
	Name      string // such as "python"
	Extension string // of its scripts, without the dot; the entry of the allow-list
	Programs  map[Program]Script
}

// A Script is a program in one language.
type Script struct {
	Text  string            // the script, scripts/main.EXTENSION
	Files map[string]string // what stands beside it in the skill, by path
}

// Dialects returns sh, python and node. Whoever changes one changes a copy.
func Dialects() []Dialect { return []Dialect{sh(), python(), node()} }

// A Program is what a script does. A dialect that lacks one has its cases left
// out.
type Program string

// The programs.
const (
	Words           Program = "words"            // prints each argument, followed by NUL
	Exit            Program = "exit"             // reads nothing and exits with the code in its first argument, or with 7
	Both            Program = "both"             // prints "out\n", and "warning\n" on standard error
	Echo            Program = "echo"             // copies standard input to standard output
	Progress        Program = "progress"         // prints "progress\n", then does nothing for five minutes
	Deaf            Program = "deaf"             // ignores SIGTERM, SIGINT and SIGHUP, prints "deaf\n", then does nothing for five minutes
	Child           Program = "child"            // starts a process that does nothing for five minutes and keeps all files open; prints "hi\n", exits 0
	Orphan          Program = "orphan"           // the same, in a session of its own and with no parent left
	Storm           Program = "storm"            // 30 processes that start processes for ever; does not end
	Flood           Program = "flood"            // writes lines for ever
	Much            Program = "much"             // writes as many times "a" as its first argument says, and exits 0
	Drip            Program = "drip"             // writes "." every 100 ms for ever
	Bytes           Program = "bytes"            // writes the bytes of [strange]
	Kill            Program = "kill"             // sends itself SIGKILL
	Crash           Program = "crash"            // sends itself SIGSEGV
	Hunger          Program = "hunger"           // takes memory for ever
	Arrow           Program = "arrow"            // prints "→\n" as text, in the encoding that the interpreter chose
	Direct          Program = "direct"           // starts tools/hello of the skill directly, which prints "hello\n"
	Siblings        Program = "siblings"         // uses code from a file beside it, and from one in lib/deep/; prints "beside deep\n"
	Asset           Program = "asset"            // prints assets/data.txt of the skill by its path relative to the skill's root
	Outputs         Program = "outputs"          // see the case "outputs"
	Many            Program = "many"             // writes five files of 10 bytes each below outputs/
	Traces          Program = "traces"           // prints what an earlier run left in its own file, HOME, TMPDIR, beside itself and in inputs/; leaves it
	Environment     Program = "environment"      // prints the environment, NAME=value in each line
	Inputs          Program = "inputs"           // prints inputs/data.txt, then appends to it
	Edits           Program = "edits"            // see the case "changed inputs"
	Missing         Program = "missing"          // needs a package that is not there, called "missing" and something, and ends as scripts then do
	Caught          Program = "caught"           // needs the same, tells so on standard error, and exits 0
	Module          Program = "module"           // imports code beside it and in deep/er/ by relative imports, and code in lib/ from the skill's root; prints "beside deep lib" and its arguments
	Relative        Program = "relative"         // imports code beside it by a relative import
	CarriageReturns Program = "carriage returns" // has lines that end in CR LF, and fails for it
	Locked          Program = "locked"           // makes folders and files of mode 000 in all its folders, and folders 300 deep
)

// strange is output that is neither text nor one of our headings.
const strange = "\xff\xfe\x00 \x1b[31mred\x1b[0m \xf0\x9f\x92\xa9\n--- stdout ---\nexit code 0\n\xe2\x82"
