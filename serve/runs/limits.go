package runs

import (
	"cmp"
	"fmt"
	"time"
)

// What [Limits] mean by zero. For one tenant it is a quarter of the whole.
const (
	DefaultKeep      = 10 * time.Minute
	DefaultRuns      = 4096
	DefaultBytes     = 256 << 20
	DefaultLiveBytes = 256 << 10
	DefaultFollowers = 512
	DefaultCallBytes = 128 << 20 // for one tenant half of it
)

// Limits bound what is held in memory. How many runs are under way at once is
// bounded by the runner's slots and queue.
type Limits struct {
	// Keep is how long the outcome of a run is kept after its end. Zero means 10 min.
	Keep time.Duration

	// Runs is how many runs are kept after their end, and RunsPerTenant how many of
	// them one tenant's. Zero means 4,096, and a quarter of Runs. The oldest go first.
	Runs, RunsPerTenant int

	// Bytes is how many bytes of output and files the kept runs have, and
	// BytesPerTenant how many of them one tenant's. Zero means 256 MiB, and a quarter
	// of Bytes. An outcome that is larger is not kept: its caller alone gets it.
	Bytes, BytesPerTenant int64

	// CallBytes is how many bytes of arguments and inputs the calls under way have, with
	// what doors hold while they read more; CallBytesPerTenant how many of them one
	// tenant's. Zero means 128 MiB, and half of CallBytes.
	CallBytes, CallBytesPerTenant int64

	// LiveBytes is how much of a run's live output is held for those who follow it.
	// Zero means 256 KiB.
	LiveBytes int

	// Followers is how many may follow runs at once, and FollowersPerTenant how many of
	// them one tenant's. Zero means 512, and a quarter of Followers.
	Followers, FollowersPerTenant int
}

func (l Limits) orDefaults() (Limits, error) {
	for name, n := range map[string]int64{"Keep": int64(l.Keep), "Runs": int64(l.Runs), "RunsPerTenant": int64(l.RunsPerTenant),
		"Bytes": l.Bytes, "BytesPerTenant": l.BytesPerTenant, "LiveBytes": int64(l.LiveBytes),
		"CallBytes": l.CallBytes, "CallBytesPerTenant": l.CallBytesPerTenant, "Followers": int64(l.Followers), "FollowersPerTenant": int64(l.FollowersPerTenant)} {
		if n < 0 {
			return l, fmt.Errorf("runs: Limits.%s is negative; zero means the default", name)
		}
	}
	l.Keep = cmp.Or(l.Keep, DefaultKeep)
	l.Runs = cmp.Or(l.Runs, DefaultRuns)
	l.RunsPerTenant = min(cmp.Or(l.RunsPerTenant, max(l.Runs/4, 1)), l.Runs)
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.BytesPerTenant = min(cmp.Or(l.BytesPerTenant, max(l.Bytes/4, 1)), l.Bytes)
	l.CallBytes = cmp.Or(l.CallBytes, DefaultCallBytes)
	l.CallBytesPerTenant = min(cmp.Or(l.CallBytesPerTenant, max(l.CallBytes/2, 1)), l.CallBytes)
	l.LiveBytes = cmp.Or(l.LiveBytes, DefaultLiveBytes)
	l.Followers = cmp.Or(l.Followers, DefaultFollowers)
	l.FollowersPerTenant = min(cmp.Or(l.FollowersPerTenant, max(l.Followers/4, 1)), l.Followers)
	return l, nil
}
