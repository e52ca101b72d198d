// Package grant says which tenant may run which script of a skill, pinned to
// which content.
//
// A [Ref] is what a [Grant] is for: one script, or all scripts of a skill, of
// one tenant. The newest grant for a Ref counts; see [Finder]. A [Book] is
// where an operator's changes go.
package grant
