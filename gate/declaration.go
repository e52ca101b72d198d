package gate

import "time"

// A Mode says how a script takes its arguments.
type Mode string

// The modes.
const (
	Stdin Mode = "stdin" // the JSON value on standard input
	Argv  Mode = "argv"  // a list of strings, after the script's path
	Flags Mode = "flags" // an object, lowered to words by a declared mapping
	None  Mode = "none"  // none at all
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Stdin, Argv, Flags, None} }

// A Declaration is what a skill says about one of its scripts.
type Declaration struct {
	Description string
	Mode        Mode // required
	Schema      []byte
	Flags       map[string]Flag // by property; one that is not named has the flag "--name", with "-" for "_"
	Timeout     time.Duration   // below the tenant's; zero: the tenant's
}

// A Flag says how one property of a flags script becomes words.
type Flag struct {
	Flag     string // such as "--value" or "-v"; empty: "--" and the property's name
	Position int    // from 1: the value stands alone at this place behind the flags; zero: it has a flag
}

// empty returns the value that stands for no arguments at all.
func (m Mode) empty() string {
	switch m {
	case Argv:
		return "[]"
	case None:
		return "null"
	}
	return "{}"
}
