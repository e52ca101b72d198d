// Package remote is the executor that has scripts run by a runner service: its own
// house's or anybody's that speaks the wire of package wire. Open one with [New].
//
// A run is asked for once, whatever comes of it: nothing here sends it again, and the
// HTTP below is given nothing that it could send again. What went wrong is an [*Error],
// which says whether the script was definitely not started or nobody can tell.
//
// Whoever follows a run sees what it writes while it lasts, where the runner can show
// that: see [wire.LiveType].
//
// To a runner that does not say that it knows [wire.Protocol] only the plain members
// are sent, and a run that needs more is refused. How a runner stands is its own claim,
// and is marked so.
package remote
