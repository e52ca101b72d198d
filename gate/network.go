package gate

import (
	"errors"
	"fmt"
	"slices"
)

// A Network says what a run may reach. The empty Network is [NoNetwork].
type Network string

// The networks, the narrowest first.
const (
	NoNetwork Network = "none"     // no sockets of the internet at all
	Loopback  Network = "loopback" // the run's own processes on 127.0.0.1 and ::1, and nobody else
)

// Networks returns the networks, the narrowest first.
func Networks() []Network { return []Network{NoNetwork, Loopback} }

func (n Network) check() error {
	if n != "" && !slices.Contains(Networks(), n) {
		return fmt.Errorf("%w: %q is no network; the networks are %q", ErrPolicy, n, Networks())
	}
	return nil
}

// network is what a run of the tenant may reach: what the tenant's policy asks
// for, where the host allows it.
func network(host Host, policy Policy) Network {
	if host.Network == Loopback && policy.Network == Loopback {
		return Loopback
	}
	return NoNetwork
}

// sameNetwork refuses a run whose network was narrowed while it waited.
func sameNetwork(was Network, host Host, policy Policy) error {
	if was != NoNetwork && network(host, policy) != was {
		return &Denial{Gate: SwitchGate, Err: errors.New("the network was narrowed while the call waited"), Remedy: "call again"}
	}
	return nil
}
