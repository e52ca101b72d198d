package config

import "strings"

// Remote is what the executor "remote" is told.
type Remote struct {
	Address   string
	Reach     []string // where the address may lead besides the public internet
	KeyFile   string   // file with the bearer key; absolute
	Cert      string   // files of the client certificate and its key; absolute
	CertKey   string
	CA        string // file with the certificates that the runner's may be signed by; absolute; empty: the system's
	TicketKey string // file with the key that signs tickets; absolute; empty: none are sent
	Name      string // that the runner must tell of itself; empty: any
}

// remoteSettings are the part of the table that the executor "remote" reads.
var remoteSettings = []Setting{
	{Key: "remote", Doc: "executor remote: address of the runner service, such as https://runner.example.com",
		set:  func(c *Config, s string, _ folder) error { c.Remote.Address = s; return nil },
		text: func(c *Config) string { return c.Remote.Address }},
	{Key: "remote_reach", list: true, Doc: "executor remote: where the address may lead besides the public internet: loopback, private; empty: nowhere else",
		set: func(c *Config, s string, _ folder) error {
			c.Remote.Reach = nil
			for word := range strings.SplitSeq(s, ",") {
				if word != "" {
					c.Remote.Reach = append(c.Remote.Reach, word)
				}
			}
			return nil
		},
		text: func(c *Config) string { return strings.Join(c.Remote.Reach, ",") }},
	file("remote_key_file", "executor remote: file with the key of the runner, which nobody else may read; it is read for each run", func(c *Config) *string { return &c.Remote.KeyFile }),
	file("remote_cert", "executor remote: file with the client certificate; empty: there is none", func(c *Config) *string { return &c.Remote.Cert }),
	file("remote_cert_key", "executor remote: file with its private key, which nobody else may read", func(c *Config) *string { return &c.Remote.CertKey }),
	file("remote_ca", "executor remote: file with the certificates that the runner's may be signed by; empty: the system's", func(c *Config) *string { return &c.Remote.CA }),
	file("remote_ticket_key", "executor remote: file with the Ed25519 key that signs a ticket for each run, which nobody else may read; empty: none are sent", func(c *Config) *string { return &c.Remote.TicketKey }),
	text("remote_name", "executor remote: runner_name of the runner, which tickets are bound to: one that tells another name is sent nothing; required with remote_ticket_key; empty: any", func(c *Config) *string { return &c.Remote.Name }),
}
