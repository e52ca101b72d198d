// Package oidc says who a token of an identity provider is: it checks signature,
// issuer, audience and times by OpenID Connect, and maps claims to a tenant and roles.
// [New] makes a [Verifier], which reaches the provider when the first token comes.
//
// # Reaching the provider
//
// Its address comes from the configuration, what it answers from elsewhere. So every
// connection is looked at when it is made, after the name was resolved: addresses of
// this machine and of private networks are refused unless the configuration has the
// word for them. There is no redirect, no proxy of the environment, https alone (but
// on this machine), and answers are bounded.
package oidc
