package client

import "github.com/tracon-go/tracon/bundle"

// A Health is the answer of the health check.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// A Readiness says whether scripts can run. Why is for the platform alone.
type Readiness struct {
	Status string `json:"status" enum:"ready,not ready"`
	Why    string `json:"why,omitempty" doc:"for the platform alone"`
}

// A ServerVersion is that of the server.
type ServerVersion struct {
	Version string `json:"version"`
	API     string `json:"api" doc:"rises when a client must change"`
}

// A Whoami says who the credential is.
type Whoami struct {
	Tenant      string   `json:"tenant,omitempty" doc:"none: the platform's"`
	Actor       string   `json:"actor"`
	Key         string   `json:"key,omitempty" doc:"id of the API key"`
	Roles       []string `json:"roles" nullable:"false"`
	Permissions []string `json:"permissions" nullable:"false"`
}

// A Posture says which walls the executor puts around a script on the host.
type Posture struct {
	Executor string `json:"executor"`
	Tier     string `json:"tier"`
	Claimed  bool   `json:"claimed" doc:"nobody proved it: the executor's own word"`
	Walls    []Wall `json:"walls" nullable:"false"`
}

// A Wall is one thing that an executor keeps a script from.
type Wall struct {
	Name   string `json:"name"`
	Stands bool   `json:"stands"`
	Proof  string `json:"proof"`
	Remedy string `json:"remedy,omitempty"`
}

// A Runtime is a root file system that has a name on the host.
type Runtime struct {
	Name   string        `json:"name"`
	Digest bundle.Digest `json:"digest"`
	UsedBy []string      `json:"usedBy" nullable:"false" doc:"extensions of the allow-list whose interpreter lies in it"`
	Older  []string      `json:"older,omitempty" nullable:"false" doc:"those whose interpreter lies in what had the name before"`
	Source string        `json:"source,omitempty" doc:"where it came from, as its package said when it was named"`
	Info   *RuntimeInfo  `json:"info,omitempty" doc:"none where it cannot be read: see amiss"`
	Amiss  string        `json:"amiss,omitempty" doc:"what is wrong with it on this host"`
}

// RuntimeInfo says what a root file system holds.
type RuntimeInfo struct {
	Digest      bundle.Digest     `json:"digest"`
	Tree        bundle.Digest     `json:"tree" doc:"of its files alone; its digest, where it sets no variable"`
	Files       int               `json:"files"`
	Folders     int               `json:"folders"`
	Links       int               `json:"links"`
	Bytes       int64             `json:"bytes" doc:"of the files, holes too"`
	Environment map[string]string `json:"environment,omitempty" doc:"variables that runs see in place of the usual ones"`
}

// An ImportedRuntime is what came of importing a runtime.
type ImportedRuntime struct {
	Runtime Runtime       `json:"runtime"`
	Before  bundle.Digest `json:"before,omitzero" required:"false" doc:"what had the name"`
	Skipped []string      `json:"skipped" nullable:"false" doc:"what was left out; at most 100"`
	Left    int           `json:"left" doc:"how many were left out"`
}

// A RemovedRuntime is what a name meant.
type RemovedRuntime struct {
	Name   string        `json:"name"`
	Digest bundle.Digest `json:"digest"`
	Kept   bool          `json:"kept,omitempty" doc:"somebody still holds the files: a later removal takes them"`
}
