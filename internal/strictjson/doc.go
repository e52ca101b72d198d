// Package strictjson reads JSON at the doors of the house, where two readers
// must never see two things in the same bytes: exactly one value, no name twice
// in an object, valid UTF-8 and no lone surrogates, bounded depth and size.
// Names are matched by exact case. Numbers are text and are never rounded.
//
// Start with [Canonical] for a value that is handed on, [Decode] for one that
// is looked into, and [Unmarshal] for one that becomes a Go value. It is the
// only importer of the JSON library.
package strictjson
