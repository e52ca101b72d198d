package microvm

import (
	"path/filepath"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/snapshot"
)

// A Snapshot is a machine that was saved, and that those of runs are restored of.
type Snapshot struct {
	Key    bundle.Digest // of all that it was made with
	Memory int64         // bytes; of the machine; zero where Err is not nil
	Bytes  int64         // on the disk
	Used   time.Time     // when it was made or loaded last
	Err    error         // why it will be refused and made anew; nil: it is whole
}

// Snapshots returns the saved machines beside the kit in the folder, the one that was used
// last first. Each is read, and held against its digest.
func Snapshots(kit string) ([]Snapshot, error) {
	kept, err := snapshot.List(snapshotDir(kit))
	var list []Snapshot
	for _, k := range kept {
		list = append(list, Snapshot{k.Key, k.Info.Memory, k.Bytes, k.Used, k.Err})
	}
	return list, err
}

func snapshotDir(kit string) string { return filepath.Join(kit, "snapshots") }
