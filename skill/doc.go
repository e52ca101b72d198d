// Package skill reads skills: folders with a SKILL.md and scripts, as the Agent
// Skills standard has them. Start with [Read] for one folder; a [Library] finds
// skills below roots and is what the gates take content from; [Declarations]
// tells how a script takes its arguments.
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
// the bundle's declaration, so they are under the pin.
package skill
