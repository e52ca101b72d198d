package executor

import (
	"context"

	"github.com/tracon-go/tracon/grant"
)

// A Posture says which walls an executor puts around a script on this host.
type Posture struct {
	Executor string     `json:"executor"` // its name, such as "process"
	Tier     grant.Tier `json:"tier"`     // the tier that the standing walls make
	Claimed  bool       `json:"claimed"`  // nobody proved it: the executor's own word
	Walls    []Wall     `json:"walls"`
}

// A Wall is one thing that an executor keeps a script from.
type Wall struct {
	Name   string `json:"name"`             // such as "network", "files", "processes"
	Stands bool   `json:"stands"`           // it stands on this host
	Proof  string `json:"proof"`            // how that is known
	Remedy string `json:"remedy,omitempty"` // how to get it, where it does not stand
}

// A Posturer is an Executor that can tell its posture. One that is not is
// claimed to be of the lowest tier.
type Posturer interface {
	Posture(ctx context.Context) (Posture, error)
}
