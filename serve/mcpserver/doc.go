// Package mcpserver gives a model a tenant's skills over the Model Context Protocol: the
// four tools of package toolset, and the skills' files as resources (SEP-2640). It speaks
// every version of the protocol from 2024-11-05 to 2026-07-28, over streamable HTTP (see
// [New]) and over a pair of streams (see [Stdio]).
//
// The tenant comes from the credential, never from the protocol. It is the only importer
// of the protocol's library.
package mcpserver
