// Package telemetry is where spans and metrics go: over OTLP to a collector, and to
// whoever scrapes. It is the only importer of OpenTelemetry's SDK and exporters.
package telemetry
