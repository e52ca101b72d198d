// Package notes words what people stumble over when a script runs and does not
// do what they meant: what a result can tell them beyond the script's own output.
//
// A note is one line of plain text, the same for the same run. It holds no path
// of the host and nothing of a script's output but a name that was checked. Names
// that a script chose are escaped and cut, and of many only the first are named.
package notes
