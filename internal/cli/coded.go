package cli

import (
	"errors"
	"net"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// codeNotStarted is the code of a call that ended before a gate was asked, where the
// API has none for it.
const codeNotStarted client.Code = "not_started"

// coded is the error of a call that never started, by its code: that of the server's
// problem, or codeNotStarted. Without one a call is "unknown", which means that it was
// started and that nobody knows its end.
type coded struct {
	err  error
	code client.Code
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// notStarted gives err a code if it has none.
func notStarted(err error) error {
	if _, ok := errors.AsType[*coded](err); ok {
		return err
	}
	return &coded{err, codeNotStarted}
}

// neverSent reports whether no connection was made for the request that err is of.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
