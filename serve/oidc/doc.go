// Package oidc says who a token of an identity provider is: it checks signature,
// issuer, audience and times by OpenID Connect, and maps claims to a tenant and roles.
// [New] makes a [Verifier], which reaches the provider when the first token comes.
//
// # Reaching the provider
//
// Its address comes from the configuration, what it answers from elsewhere: package
// outbound says where it may be. A provider that is asked by https names its keys by
// https.
package oidc
