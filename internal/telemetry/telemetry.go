package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config says what is told of this process, and to whom.
type Config struct {
	Version  string // of this program
	Instance string // id of this process

	// Traces is the address that spans are posted to by OTLP over HTTP, such as
	// http://127.0.0.1:4318/v1/traces. Empty: there are none.
	Traces string
	// Share of the calls that have spans, from 0 to 1.
	Share float64

	Logger *slog.Logger // told where something could not be exported; required
}

// MaxSpans is how many ended spans wait for the collector; more are dropped.
const MaxSpans = 2048

// Telemetry is running. It is safe for concurrent use.
type Telemetry struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider

	registry *prometheus.Registry
	stop     []func(context.Context) error
}

// New starts what c asks for. It reaches nobody: a collector that is not there is
// told to the Logger later, and spans are dropped.
//
// # Errors
//
// One that says what of c cannot hold.
func New(ctx context.Context, c Config) (*Telemetry, error) {
	about := resource.NewSchemaless(attribute.String("service.name", "tracon"),
		attribute.String("service.version", c.Version), attribute.String("service.instance.id", c.Instance))
	t := &Telemetry{Traces: noop.NewTracerProvider(), registry: prometheus.NewRegistry()}
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(about))
	t.Metrics, t.stop = meters, append(t.stop, meters.Shutdown)
	if c.Traces == "" {
		return t, nil
	}
	if u, err := url.Parse(c.Traces); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("traces: %q is no address; write one such as http://127.0.0.1:4318/v1/traces", c.Traces)
	}
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Traces))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// The SDK has one place in the process for what goes wrong in the background.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Logger.Warn("telemetry could not be exported", "err", err) }))
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to, sdktrace.WithMaxQueueSize(MaxSpans)), sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.Share))))
	t.Traces, t.stop = traces, append(t.stop, traces.Shutdown)
	return t, nil
}

// Handler answers with the metrics in the form that Prometheus scrapes.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second, DisableCompression: true})
}

// Close exports what waits, until ctx is done.
func (t *Telemetry) Close(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}
