// Package cli is the command line: its verbs, what they print and how they exit.
//
// It decides nothing of its own. What a verb does is done by the house that
// internal/daemon builds; here its words are read and its answer is shown.
package cli
