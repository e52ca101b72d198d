// Package fleet is an executor that sends scripts to many runners over NATS, and
// the side of a runner that takes them. It is the only importer of the client
// library.
//
// A pool is an account of the NATS server: what is said in one is heard in no
// other. [New] makes the executor of a control plane, with a link into each pool;
// [Join] has a runner take the runs of one pool.
//
// # A run's way
//
// The control plane offers the run to the queue group of its runtime, tier and
// label. One runner that has a place answers and keeps the place for a moment.
// Nobody there, all busy, no answer: nothing was started, and that is certain. Then
// the closure, where the runner lacks it, goes to this one runner in chunks that are
// each acknowledged, and so does a run of more than a chunk, or for a runner of before.
// A failure up to here is certain too: the run begins by one further message, which has
// the run within it where that is small, and is sent once and never again. From there on
// an error is "unknown" (executor.ErrUnknown), but where the runner says that it
// did not start the script.
//
// While the run lasts, each side hears of the other by heartbeats. A control plane
// that misses them for [Config].Lost gives the run up as unknown; a runner that
// misses the acknowledgements stops the script, as nobody waits for it. The answer
// is sent until it is acknowledged, for messages are lost when a server dies; the
// first one counts.
//
// Where somebody follows the run, the runner tells of its output too, each piece once:
// what is lost on the way is counted, and no fault of the run, whose answer has all of it.
//
// Nothing is kept by the server: core request and reply, at most once, no
// JetStream. A run is never sent a second time.
package fleet
