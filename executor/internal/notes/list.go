package notes

import (
	"fmt"
	"strings"
)

// Bounds of what one note names.
const (
	MaxNamed    = 8   // names in a list
	maxPathText = 256 // bytes of a path
)

// Path writes a path that a script chose so that it can stand in a line.
func Path(path string) string {
	if len(path) > maxPathText {
		path = path[:maxPathText] + "…"
	}
	q := fmt.Sprintf("%q", path)
	return q[1 : len(q)-1]
}

// A List counts things and keeps the names of the first [MaxNamed].
type List struct {
	Count   int
	AtLeast bool // there may be more that were not looked at
	First   []string
}

// Add counts the path.
func (l *List) Add(path string) {
	if l.Count++; len(l.First) < MaxNamed {
		l.First = append(l.First, Path(path))
	}
}

// String returns the names, and how many more there are.
func (l List) String() string {
	s := strings.Join(l.First, ", ")
	if more := l.Count - len(l.First); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// say fits one of two sentences to the number of things in the list.
func (l List) say(one, many string) string {
	switch {
	case l.AtLeast:
		return fmt.Sprintf("at least %d %s", l.Count, many)
	case l.Count == 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", l.Count, many)
}

// Thrown tells of files that were written beside the script, where nothing is
// kept. Outputs is the folder that is kept, as the script reaches it. For none
// it returns "".
func Thrown(l List, outputs string) string {
	if l.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s thrown away: %s; write below %s to keep them",
		l.say("file written beside the script was", "files written beside the script were"), l, outputs)
}

// Unasked tells of files below outputs/ that match none of the patterns that the
// skill declares. For none it returns "".
func Unasked(l List) string {
	if l.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s not collected: %s", l.say("entry of outputs/ matches no output pattern of the script and was", "entries of outputs/ match no output pattern of the script and were"), l)
}

// Deleted tells of input files that are gone. For none it returns "".
func Deleted(l List) string {
	if l.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", l.say("input file was deleted", "input files were deleted"), l)
}
