// Package interpreter finds the interpreters of this host, learns what they
// really are, and opens them to be started. Executors that start an interpreter
// of the host build on it; it is none itself.
//
// Start with [Find], which searches PATH for what runs an extension, or with
// [Probe] for a path that an operator names. Both run the interpreter once, see
// through shims and wrappers, and answer with a [Found]; its Interpreter method
// gives the entry of an allow-list. At each run an [Opener] opens the file and
// makes sure that it is the very one that was probed; [Command] tells the fixed
// options that stand before the script.
package interpreter
