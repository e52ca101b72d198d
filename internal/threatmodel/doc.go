// Package threatmodel holds who may attack, what they could win, what is promised
// against whom, and which tests of this build show it. All of it stands in
// threatmodel.yaml; docs/threat-model.md is made from it:
//
//	go test ./internal/threatmodel -update
//
// Its tests fail when a promise has no row, when a row of a room that exists
// names no test or one that does not exist, when a case of the hostile suite
// belongs to no row, and when the page is stale.
package threatmodel
