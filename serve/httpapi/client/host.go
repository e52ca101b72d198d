package client

// A Health is the answer of the health check.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// A Version is that of the server.
type Version struct {
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
