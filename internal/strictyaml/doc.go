// Package strictyaml reads the small part of YAML that people write in settings
// and that two readers cannot take for two things: one document, plain maps,
// lists and scalars. Aliases, anchors, merge keys and tags of one's own are
// refused, as are duplicate keys and keys that nobody knows. The size is bounded
// before anything is parsed.
//
// Start with [Decode] for settings that become a Go value, or with [Parse] for
// the tree with its lines. It is the only importer of the YAML library.
package strictyaml
