// Package skill reads skills: folders with a SKILL.md and scripts, as the Agent
// Skills standard has them. Start with [Read] for one folder; a [Library] finds
// skills below roots and is what the gates take content from; [Declarations]
// tells how a script takes its arguments. [Lint] is for authors and reviewers;
// [ReadZip] and [FromFiles] bring a skill in from an archive, [WriteZip] and
// [WriteFolder] take it out again with the same digest; [Stored] makes the bundle
// of a script that has no folder.
//
// # Reading a folder
//
// Every byte is read once, through [os.Root], element by element and without
// following links. Regular files alone count: a link, a fifo, a socket, a device
// or a name that no file of a bundle can have is left out, neither staged nor
// pinned, and a [Diagnostic] names it. What cannot be read is an error, for a
// folder that is half read cannot be pinned.
//
// # SKILL.md and tracon.yaml
//
// SKILL.md is read leniently, for much of what people have bends the standard:
// what can be understood is understood, and said. tracon.yaml beside it is ours
// and optional, and is read strictly: an unknown key is an error. Its bytes are
// the bundle's declaration, so they are under the pin. [DeclarationSchema] is its
// JSON Schema.
//
// # Diagnostics
//
// Reading says what it bends; the lint says the same more strictly, and adds what
// an author stumbles over. Each [Diagnostic] has a code, which programs may rely
// on, a place, and what to do. Codes that begin with "risk-" are signs that a
// reviewer should look at: the network, other programs, code made at run time,
// the environment, encoded texts, letters and characters that deceive. They are
// found by words, so they prove nothing, and their absence proves nothing either.
package skill
