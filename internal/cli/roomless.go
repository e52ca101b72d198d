package cli

import (
	"slices"
	"strings"
)

// rooms are the packages whose errors begin with their name: words that tell a
// programmer where to look, and a user nothing.
var rooms = []string{
	"access", "admin", "audit", "box", "broker", "bundle", "calls", "client", "config", "conformance", "container", "daemon",
	"engine", "executor", "fleet", "fsck", "gate", "grant", "handover", "holder", "httpapi", "hub", "idempotency", "image", "instance",
	"interpreter", "keep", "kit", "limit", "mcpserver", "memstore", "microvm", "notary", "notes", "observe", "oci", "oidc", "outbound", "ownfile",
	"params", "postgres", "process", "registry", "remote", "retention", "rootfs", "runnerapi", "runs", "sandbox", "schema", "skill", "slot", "snapshot",
	"spool", "sqlite", "sqlstore", "store", "strictjson", "strictyaml", "telemetry", "threatmodel", "ticket", "toolcall", "toolset",
	"tracon", "turns", "wire", "witness",
}

// withoutRoom is the text of an error as users read it: without the names of our packages in
// front.
func withoutRoom(text string) string {
	for {
		word, rest, ok := strings.Cut(text, ": ")
		if !ok || !slices.Contains(rooms, word) {
			return text
		}
		text = rest
	}
}
