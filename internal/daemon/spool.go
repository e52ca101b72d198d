package daemon

import "github.com/tracon-go/tracon/internal/spool"

// Spool returns where the files of a skill are put aside while it is read: in the
// data folder, which has room for what is imported and is read by nobody else.
// Folders for the time being are often memory. Close it when the skill is imported.
func (h *House) Spool() *spool.Spool { return spool.New(h.Config.Data, h.Config.Content) }
