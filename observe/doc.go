// Package observe tells OpenTelemetry what happens to calls: an [Observer] for
// tracon.Config makes a span and metrics of each, and tells of slots and of the log.
// It imports the API alone; whoever embeds it brings the providers.
//
// No span and no metric holds arguments, output, or a script's text. Metrics have
// labels from closed sets: never a tenant's, a skill's or a script's name, unless
// [Config].Names says so.
//
// The names are in names.go, and nowhere else.
package observe
