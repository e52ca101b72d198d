// Package wire is the JSON that a host and a runner service speak: the host posts
// a [Run] to "runs" below the service's base address and gets an [Answer].
//
// Any other host's remote executor, and any other runner, can speak the plain
// members. What this house adds stands in one further member, "tracon", of
// either. A host sends it only to a runner whose [Info] lists [Protocol]; a
// runner answers with it only to a host that sent it. On this wire alone, names
// are read without regard to ASCII case, a name that stands twice once its case
// is folded is refused, and unknown members are ignored.
//
// A runner whose Info lists [ProtocolLive] can show output before the end, as the frames
// of [LiveType].
//
// [ReadRun] and [ReadAnswer] read bounded, strictly, and check what can be
// checked without knowing who asks. They decide nothing: that is for the gates.
package wire
