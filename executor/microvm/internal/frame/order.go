package frame

// An Interpreter is what is started, whichever script it is to run, and with what. An
// agent trusts it.
type Interpreter struct {
	Kind      string   `json:"kind"`    // which it is: of the kinds that are named here, or none of them
	Command   []string `json:"command"` // its absolute path, and its options
	Env       []string `json:"env"`
	Filter    []byte   `json:"filter"` // of system calls, as the kernel reads it
	Rlimits   []Rlimit `json:"rlimits"`
	Memory    int64    `json:"memory"`    // bytes
	Processes int      `json:"processes"` // and threads
	Input     bool     `json:"input"`     // there is standard input; else it is at its end
}

// Kinds of interpreters that an agent can start before it knows their script. Python and
// Node wait for it; the others end at once, and are in memory.
const (
	Python = "python"
	Node   = "node"
	Bash   = "bash"
	Sh     = "sh"
	Perl   = "perl"
	Ruby   = "ruby"
)

// A Ready is what an agent may be told before an order: which interpreter it will be. It
// answers with Hello.
type Ready struct {
	Interpreter
	Most int64 `json:"most"` // nanoseconds until the agent answers without it
	Wait bool  `json:"wait"` // the interpreter waits for its script; else it is gone when the agent answers, and in memory
}

// Orders is all that an agent is told of a run, once: which files to lay out, and what
// to start. Behind it come, as Data, the bytes of: the seed, standard input, the
// declaration, the skill's files, the inputs. An agent trusts it. The seed is SeedBytes.
type Orders struct {
	Seed        int    `json:"seed"` // bytes of it
	Time        int64  `json:"time"` // nanoseconds since 1970
	Stdin       int    `json:"stdin"`
	Declaration int    `json:"declaration"`
	Digest      string `json:"digest"` // of the closure
	Skill       []File `json:"skill"`
	Inputs      []File `json:"inputs"`

	Interpreter
	Script []string `json:"script"` // what comes behind the interpreter and its options
	Plain  bool     `json:"plain"`  // that is a file's absolute path, and the script's words
	Space  int64    `json:"space"`  // bytes that may be written
	Shm    int64    `json:"shm"`    // beyond it, below /dev/shm
	Inodes int      `json:"inodes"` // files and folders, those laid out too
	Flood  int64    `json:"flood"`  // bytes of each stream that are worth sending
}

// A File is one to lay out.
type File struct {
	Path string `json:"path"`
	Size int    `json:"size"`
}

// An Rlimit is a limit of each process.
type Rlimit struct {
	What  int    `json:"what"`
	Limit uint64 `json:"limit"`
}

// Where a run has its files, as its script sees them.
const (
	SkillDir   = "/skill"
	InputsDir  = "/inputs"
	OutputsDir = "/outputs"
	TmpDir     = "/tmp"
	HomeDir    = "/tmp/home"
	ShmDir     = "/dev/shm"
)

// InsideID is the user and the group that a script is.
const InsideID = 1000
