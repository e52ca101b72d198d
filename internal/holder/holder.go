// Package holder tells whether the process that holds a lock is dead. A lock of a file
// ends with its process, but not at that very moment: a child that was forked and has not
// yet become its program has it too, and outlives a parent that is killed just then.
package holder

// Self returns what others can know this process by, for the file that it locks. It is
// empty where the platform does not tell.
func Self() string { return self() }

// Dead reports whether the process that wrote text is certainly dead. It is false where
// nobody can know: the text is of a process that this one cannot see, or of none.
func Dead(text string) bool { return text != "" && dead(text) }
