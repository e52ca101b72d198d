// Package gate decides whether a script may run.
//
// A [Call] is what somebody asked for, and nothing in it is trusted. A [Gate]
// takes it through every gate in one order, writes the audit entry, and answers
// with a [Request] or with a [Denial]. What a gate finds is a value that the
// next one needs and that only this gate makes, so a gate that is left out does
// not compile; see [Gate.Admit].
//
// A second door, [Gate.Accept], takes what another host delivers, whose gates have
// decided already, through this host's own. There is no third.
//
// A Request is the only thing an executor runs. No other package can make one,
// and the zero Request is not valid.
package gate
