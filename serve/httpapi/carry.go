package httpapi

import (
	"context"
	"slices"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// streamsGoing is what the streams of a run may have to go with the answer to its start
// whatever else is under way: those of a policy's default limit do.
const streamsGoing = 2 * gate.DefaultMaxOutput

// carried is run as the answer to its start has it, where data says that the data of its
// files was asked for. A large answer has a place, as every other: it lies in memory until
// it was read. Where there is none the run is told without what is large, since it has run
// and is not lost by that; what was left out is got by requests that take places.
func (s *server) carried(ctx context.Context, run client.Run, data bool) client.Run {
	streams := textOf(run)
	if streams <= streamsGoing {
		streams = 0
	}
	if s.going(ctx, run.Tenant, streams+dataOf(run)) != nil {
		run.Outputs = slices.Clone(run.Outputs) // what is kept of the run stays whole
		for i := range run.Outputs {
			run.Outputs[i].Data = nil
		}
		if streams > 0 {
			run.Stdout, run.Stderr, run.Stdout64, run.Stderr64, run.OutputLeftOut = nil, nil, nil, nil, true
		}
	}
	missing := func(o client.Output) bool { return o.Data == nil && o.Size > 0 }
	run.OutputLeftOut = run.OutputLeftOut || data && slices.ContainsFunc(run.Outputs, missing)
	return run
}

// textOf is how many bytes of streams the answer has.
func textOf(r client.Run) (n int64) {
	for _, text := range []*string{r.Stdout, r.Stderr} {
		if text != nil {
			n += int64(len(*text))
		}
	}
	return n + int64(len(r.Stdout64)+len(r.Stderr64))
}

// dataOf is how many bytes of files the answer has.
func dataOf(r client.Run) (n int64) {
	for _, o := range r.Outputs {
		n += int64(len(o.Data))
	}
	return n
}
