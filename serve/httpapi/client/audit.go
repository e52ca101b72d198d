package client

import "time"

// An Entry is one entry of the log.
type Entry struct {
	Index   uint64            `json:"index" doc:"place in the log"`
	Hash    string            `json:"hash" doc:"of the leaf, as RFC 6962 has it; hex"`
	Seq     uint64            `json:"seq" doc:"place in the tenant's history"`
	ID      string            `json:"id"`
	Time    time.Time         `json:"time"`
	Tenant  string            `json:"tenant"`
	Actor   string            `json:"actor"`
	Kind    string            `json:"kind"`
	Subject string            `json:"subject"`
	Run     string            `json:"run,omitempty" doc:"id of the call"`
	Count   uint64            `json:"count" doc:"how many alike it stands for"`
	Facts   map[string]string `json:"facts"`
	Leaf    []byte            `json:"leaf,omitempty" doc:"the bytes that are hashed, where they were asked for"`
}

// EntryFilter chooses entries. The zero EntryFilter chooses all.
type EntryFilter struct {
	From         uint64    // only from this index on
	Kinds        []string  // only of these kinds
	Run          string    // only of this call
	Actor        string    // only of what this actor did
	Subject      string    // only those whose subject begins so
	Since, Until time.Time // only from then on, and before then
	Leaf         bool      // with the bytes that are hashed
}

// A Receipt proves an entry to anybody.
type Receipt struct {
	Entry   Entry  `json:"entry"`
	Receipt string `json:"receipt" doc:"C2SP tlog-proof, with the leaf"`
}

// A Checkpoint says, signed, that the log had so many entries and that root.
type Checkpoint struct {
	Origin string   `json:"origin"`
	Size   uint64   `json:"size"`
	Root   string   `json:"root"`
	Note   string   `json:"note" doc:"C2SP signed note"`
	Keys   []string `json:"keys" nullable:"false" doc:"the log's public keys, the last one signed it"`
}

// A Verified is what computing the log again found.
type Verified struct {
	OK          bool    `json:"ok"`
	Fault       string  `json:"fault,omitempty" doc:"altered, missing, truncated, rolled back, unsigned"`
	Index       *uint64 `json:"index,omitempty" doc:"of the first bad entry"`
	Size        uint64  `json:"size"`
	Root        string  `json:"root"`
	Signed      uint64  `json:"signed" doc:"how many of the entries a checkpoint covers"`
	Checkpoints int     `json:"checkpoints"`
	Key         string  `json:"key,omitempty"`
}

// A ReceiptCheck is a receipt to be checked.
type ReceiptCheck struct {
	Receipt string `json:"receipt" minLength:"1" maxLength:"1048576"`
}

// A ReceiptChecked says whether a receipt holds, and the log goes on from it.
type ReceiptChecked struct {
	OK    bool   `json:"ok"`
	Fault string `json:"fault,omitempty" doc:"altered, rolled back, unsigned"`
	Entry *Entry `json:"entry,omitempty"`
	Size  uint64 `json:"size" doc:"of the checkpoint"`
}
