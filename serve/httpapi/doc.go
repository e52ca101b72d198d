// Package httpapi is the management API: what an operator and an application do with
// Tracon over HTTP. [New] returns it as one http.Handler, which serves below /v1/ and
// at /openapi.json, /healthz and /readyz, and may be mounted below any prefix of an
// existing server.
//
// # Who asks
//
// An [Authenticator] makes an access.Principal of the request's credential: [Keys]
// for API keys, or the embedder's own. The tenant is the principal's and nothing
// else's: no path, no parameter, no header and no body names one. What is another
// tenant's is not found, as what does not exist. A principal of the platform reaches
// into no tenant's skills, grants or runs.
//
// # What is read
//
// JSON is strict: exact case, no name twice, UTF-8, bounded depth, one value, no
// member and no parameter that an operation does not know. Every body is bounded. A
// change of what exists takes If-Match.
//
// # What is answered
//
// Every refusal is a problem detail with a code of a closed set (client.Code). None
// holds a path of the host, another tenant's id, or the text of an error that was not
// made for strangers: the log has that, beside the request's id.
package httpapi
