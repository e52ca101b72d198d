package client

import (
	"encoding/json"

	"github.com/tracon-go/tracon/bundle"
)

// A Policy is what holds for the tenant, with the defaults of what was not set.
type Policy struct {
	Enabled        bool             `json:"enabled"`
	Interpreters   []string         `json:"interpreters" nullable:"false" doc:"extensions of the host's allow-list that the tenant may use"`
	MinTier        string           `json:"minTier,omitempty" doc:"least tier, beside the grant's"`
	MaxArguments   int              `json:"maxArguments" doc:"bytes"`
	MaxOutput      int              `json:"maxOutput" doc:"bytes of each stream"`
	MaxInputs      int64            `json:"maxInputs" doc:"bytes of all input files"`
	MaxOutputs     int64            `json:"maxOutputs" doc:"bytes of all output files"`
	MaxOutputFiles int              `json:"maxOutputFiles"`
	TimeoutSeconds float64          `json:"timeoutSeconds"`
	Memory         int64            `json:"memory" doc:"bytes of a run"`
	Processes      int              `json:"processes" doc:"processes and threads of a run"`
	Network        string           `json:"network,omitempty" doc:"what scripts may reach, as far as the host allows it; none: no network"`
	RequireWalls   []string         `json:"requireWalls,omitempty" nullable:"false"`
	KeepArguments  bool             `json:"keepArguments,omitempty"`
	Environment    map[string]Hides `json:"environment,omitempty" doc:"names; the values are not told"`
	Secrets        []string         `json:"secrets,omitempty" nullable:"false" doc:"names of the environment whose values are masked in what runs write"`
}

// Hides stands for a value that is not told.
type Hides struct {
	Bytes int `json:"bytes"`
}

// A PolicyChange says what is to change; what is not there stays as it is. Zero sets a
// limit to its default.
type PolicyChange struct {
	Enabled        *bool             `json:"enabled,omitempty"`
	Interpreters   *[]string         `json:"interpreters,omitempty" nullable:"false" maxItems:"64"`
	MinTier        *string           `json:"minTier,omitempty" enum:",process,sandbox,kernel,vm"`
	MaxArguments   *int              `json:"maxArguments,omitempty"`
	MaxOutput      *int              `json:"maxOutput,omitempty"`
	MaxInputs      *int64            `json:"maxInputs,omitempty"`
	MaxOutputs     *int64            `json:"maxOutputs,omitempty"`
	MaxOutputFiles *int              `json:"maxOutputFiles,omitempty"`
	TimeoutSeconds *float64          `json:"timeoutSeconds,omitempty"`
	Memory         *int64            `json:"memory,omitempty"`
	Processes      *int              `json:"processes,omitempty"`
	Network        *string           `json:"network,omitempty"`
	RequireWalls   *[]string         `json:"requireWalls,omitempty" nullable:"false" maxItems:"64"`
	KeepArguments  *bool             `json:"keepArguments,omitempty"`
	SetEnvironment map[string]string `json:"setEnvironment,omitempty" doc:"variables to set; the others stay"`
	Unset          []string          `json:"unsetEnvironment,omitempty" nullable:"false" maxItems:"64" doc:"variables to take away"`
	Secrets        *[]string         `json:"secrets,omitempty" nullable:"false" maxItems:"64" doc:"names of the environment whose values are masked in what runs write, all of them; a value has 8 bytes at least"`
}

// An Interpreter is what runs the scripts of one extension.
type Interpreter struct {
	Path   string        `json:"path,omitempty" doc:"on the host, or in the runtime where there is a name"`
	Name   string        `json:"name,omitempty" doc:"a runtime's"`
	Digest bundle.Digest `json:"digest,omitzero" required:"false" doc:"of the file at path, as it was probed"`
	Image  bundle.Digest `json:"image,omitzero" required:"false" doc:"of the runtime's root file system"`
}

// A Host is what holds for every tenant.
type Host struct {
	Enabled      bool                   `json:"enabled"`
	Interpreters map[string]Interpreter `json:"interpreters" doc:"the allow-list, by extension"`
	Network      string                 `json:"network,omitempty" doc:"the most that a tenant's policy may ask for"`
	RequireWalls []string               `json:"requireWalls,omitempty" nullable:"false"`
	TrustClaimed bool                   `json:"trustClaimed,omitempty"`
	Content      ContentLimits          `json:"content"`
	Fixed        bool                   `json:"fixed,omitempty" doc:"the host's configuration file says it, so it cannot be changed here"`
	Platform     string                 `json:"platform,omitempty" doc:"what an image in layers is made for that becomes a runtime here, such as linux/amd64"`
}

// ContentLimits bound the files of a skill.
type ContentLimits struct {
	FileBytes  int64 `json:"fileBytes"`
	TotalBytes int64 `json:"totalBytes"`
	Files      int   `json:"files"`
	Depth      int   `json:"depth"`
	PathBytes  int   `json:"pathBytes"`
}

// A HostChange says what is to change; what is not there stays as it is.
type HostChange struct {
	Enabled      *bool             `json:"enabled,omitempty"`
	Network      *string           `json:"network,omitempty"`
	RequireWalls *[]string         `json:"requireWalls,omitempty" nullable:"false" maxItems:"64"`
	Interpreters map[string]string `json:"interpreters,omitempty" doc:"by extension: a path on the host, runtime:NAME:/path, or empty for wherever it is; what is there is probed"`
	Unlist       []string          `json:"unlist,omitempty" nullable:"false" maxItems:"64" doc:"extensions to take from the allow-list"`
}

// An Explain is a call to ask the gates about.
type Explain struct {
	Skill     string          `json:"skill" minLength:"1" maxLength:"512"`
	Script    string          `json:"script" minLength:"1" maxLength:"512"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// An Explained is every gate's answer.
type Explained struct {
	Admitted bool      `json:"admitted" doc:"each gate says yes"`
	Gates    []Verdict `json:"gates" nullable:"false"`
}

// A Verdict is one gate's answer.
type Verdict struct {
	Gate   string `json:"gate"`
	Answer string `json:"answer" doc:"yes, no, failed, unasked"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}
