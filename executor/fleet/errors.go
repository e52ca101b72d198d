package fleet

import (
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/executor"
)

// Errors of [Executor.Execute]. That of the caller's context comes as it is.
var (
	// ErrNoRunner: no runner of the pool takes such runs. Nothing was started.
	ErrNoRunner = fmt.Errorf("%w: no runner takes such runs", executor.ErrUnavailable)
	// ErrNoPlace: every runner was busy for all of [Config].Wait. Nothing was started.
	ErrNoPlace = fmt.Errorf("%w: all runners are busy", executor.ErrUnavailable)
	// ErrNoPool: the tenant has no pool. Nothing was started.
	ErrNoPool = fmt.Errorf("%w: the tenant has no pool of runners", executor.ErrUnavailable)
	// ErrNotStarted: the runner says that it did not start the script, or the run was
	// not handed to it in full.
	ErrNotStarted = fmt.Errorf("%w: the runner did not start the script", executor.ErrUnavailable)
	// ErrLost: the runner was not heard of any more. The script may have run.
	ErrLost = fmt.Errorf("%w: the runner is gone", executor.ErrUnknown)
	// ErrUnconfirmed is joined to the cause of a cancellation that the runner did not
	// confirm: the script may run on until the runner's own limit.
	ErrUnconfirmed = errors.New("fleet: the runner did not confirm that the script was stopped")
)

// ErrHostLost is the cause that a runner's work is cancelled with when the control
// plane is not heard of any more.
var ErrHostLost = errors.New("fleet: the control plane is gone")

// ErrUnwanted is the cause that a runner's work is cancelled with when the control
// plane asks for it.
var ErrUnwanted = errors.New("fleet: the control plane stopped the run")
