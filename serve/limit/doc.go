// Package limit bounds what those who ask may take, so that a client that floods,
// hangs or sends garbage hurts itself alone: [Limits] for requests of known
// principals, [Listener] for connections, [Server] for the time and the size of what
// comes over one, and [Patient] for those that do not
// read, or do not send what they announced.
package limit
