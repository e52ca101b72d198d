// Package schema checks the arguments of scripts against their JSON Schema
// (draft 2020-12), where schema and arguments both come from people one does
// not trust. Start with [New]; [Checker.Check] is what the gate asks, and
// [Checker.Compile] tells an author what is wrong with a schema.
//
// # What a schema may be
//
// All of draft 2020-12, in one document: nothing is ever fetched, from nowhere,
// so every $ref must lead to a place in the schema itself. Formats that are
// known are asserted. A schema is bounded before anybody compiles it: its size,
// depth, number of subschemas, patterns and number literals. What it would cost
// to apply it to a value is counted before it is applied: a schema of 1.4 KB
// can ask for 2^40 checks of one value.
//
// It is the only importer of the JSON Schema library.
package schema
