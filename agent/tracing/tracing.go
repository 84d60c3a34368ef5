// Package tracing makes OpenTelemetry traces of control actions: requests that change something,
// the steps of a change, flows that get another path. It is off unless an OTLP endpoint is named by
// the environment variables of the OpenTelemetry specification; then nothing of it costs anything.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	otelapi "go.opentelemetry.io/otel/trace"

	"sextant/agent/api"
)

// Variables name where traces go: an OTLP collector's base URL, or the URL for traces
// (OpenTelemetry specification, OTLP exporter). Those for headers, certificates and sampling count,
// too.
var Variables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

const (
	stopWithin = 3 * time.Second // what was not sent by then is lost
	sayEach    = time.Minute     // that traces can't be sent
)

// tracer is nil while tracing is off.
var tracer atomic.Pointer[otelapi.Tracer]

// Process is what traces say of the process that they come from.
type Process struct {
	Service, Version, Node string // Service is what the process is: sextant-agent
}

// Start has traces sent, by HTTP with protobuf, if an endpoint is named. Stop sends what waits.
// What can't be sent is lost, and said in the log at most once a minute: no action waits for it.
func Start(ctx context.Context, getenv func(string) string, p Process, log *slog.Logger) (
	stop func(), err error) {
	named := false
	for _, v := range Variables {
		named = named || getenv(v) != ""
	}
	if !named {
		return func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w; see OTEL_EXPORTER_OTLP_ENDPOINT", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", p.Service), attribute.String("service.version", p.Version),
		attribute.String("service.instance.id", p.Node)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("send traces: %w; see OTEL_RESOURCE_ATTRIBUTES", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	var said atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		now, last := time.Now().UnixNano(), said.Load()
		if now-last >= int64(sayEach) && said.CompareAndSwap(last, now) {
			log.Warn("traces are not sent", "error", err)
		}
	}))
	t := provider.Tracer("sextant")
	tracer.Store(&t)
	return func() {
		tracer.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last traces were not sent", "error", err)
		}
	}, nil
}

// Handler traces requests that may change something, as a part of the trace that their header
// traceparent names (W3C Trace Context), if any.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := tracer.Load()
		if t == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(),
			propagation.HeaderCarrier(r.Header))
		ctx, span := (*t).Start(ctx, r.Method, otelapi.WithSpanKind(otelapi.SpanKindServer),
			otelapi.WithAttributes(attribute.String("http.request.method", r.Method),
				attribute.String("url.path", r.URL.Path)))
		defer span.End()
		r = r.WithContext(ctx)
		answer := api.StatusOf(w)
		next.ServeHTTP(answer, r)
		// the route has no names of objects; a pattern may have the method in front
		if route := r.Pattern[strings.IndexByte(r.Pattern, ' ')+1:]; route != "" {
			span.SetName(r.Method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", answer.Status))
		if answer.Status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(answer.Status))
		}
	})
}

// Step does a step of an action, as a span of its trace. A nil context is of an action that nobody
// asked for, and is not traced.
func Step(ctx context.Context, name string, do func() error) error {
	t := tracer.Load()
	if t == nil || ctx == nil {
		return do()
	}
	_, span := (*t).Start(ctx, name)
	defer span.End()
	err := do()
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// On says whether there is a reader of what Record is told.
func On() bool { return tracer.Load() != nil }

// Record is a span of its own, that began at a time and ends now, of pairs of keys and values.
func Record(name string, begun time.Time, pairs ...string) {
	t := tracer.Load()
	if t == nil {
		return
	}
	var said []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		said = append(said, attribute.String(pairs[i], pairs[i+1]))
	}
	_, span := (*t).Start(context.Background(), name, otelapi.WithTimestamp(begun),
		otelapi.WithAttributes(said...))
	span.End()
}
