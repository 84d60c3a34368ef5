package tracing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"sextant/agent/tracing"
)

// server takes traces as an OTLP collector does, and returns what came since.
func server(t *testing.T) (url string, spans func() []*otlp.Span) {
	t.Helper()
	bodies := make(chan []byte, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		bodies <- body
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (list []*otlp.Span) {
		for len(bodies) > 0 {
			var request collector.ExportTraceServiceRequest
			if err := proto.Unmarshal(<-bodies, &request); err != nil {
				t.Fatal(err)
			}
			for _, r := range request.ResourceSpans {
				about := r.Resource.String()
				if !strings.Contains(about, "sextant-agent") || !strings.Contains(about, "edge1") {
					t.Errorf("spans are of %s", about)
				}
				for _, s := range r.ScopeSpans {
					list = append(list, s.Spans...)
				}
			}
		}
		return list
	}
}

func named(spans []*otlp.Span, name string) *otlp.Span {
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	return &otlp.Span{}
}

func start(t *testing.T, log io.Writer) (stop func()) {
	t.Helper()
	stop, err := tracing.Start(t.Context(), os.Getenv, tracing.Process{Service: "sextant-agent",
		Version: "v1", Node: "edge1"}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// request has a handler that does a step answer a request whose trace is known.
func request(method string, step error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/services/{name}", func(w http.ResponseWriter, r *http.Request) {
		if tracing.Step(r.Context(), "commit", func() error { return step }) != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r := httptest.NewRequestWithContext(context.Background(), method, "/v1/services/web", nil)
	r.Header.Set("traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	tracing.Handler(mux).ServeHTTP(httptest.NewRecorder(), r)
}

func TestTraces(t *testing.T) {
	url, spans := server(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	stop := start(t, io.Discard)
	request(http.MethodPut, nil)
	request(http.MethodGet, nil)
	tracing.Record("reroute", time.Now().Add(-time.Second), "flow", "a")
	stop()
	got := spans()
	put, commit, reroute := named(got, "PUT /v1/services/{name}"), named(got, "commit"),
		named(got, "reroute")
	switch {
	case len(got) != 4: // the step of the GET is a trace of its own
		t.Errorf("%d spans: %v", len(got), got)
	case put.TraceId[0] != 0x01 || put.ParentSpanId[0] != 0x01 ||
		string(commit.TraceId) != string(put.TraceId) ||
		string(commit.ParentSpanId) != string(put.SpanId):
		t.Errorf("the parts of a trace do not belong together: %v, %v", put, commit)
	case reroute.EndTimeUnixNano-reroute.StartTimeUnixNano < uint64(time.Second):
		t.Errorf("the reroute took %v", reroute)
	}
	request(http.MethodPut, nil)
	if got = spans(); len(got) > 0 {
		t.Errorf("after the end, %d spans came", len(got))
	}
}

func TestFaultIsTraced(t *testing.T) {
	url, spans := server(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/v1/traces")
	stop := start(t, io.Discard)
	request(http.MethodPost, errors.New("the verifier refused"))
	stop()
	got := spans()
	post, commit := named(got, "POST /v1/services/{name}"), named(got, "commit")
	if post.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR ||
		commit.Status.GetMessage() != "the verifier refused" {
		t.Errorf("%v, %v", post, commit)
	}
}

// Off is the default, and a collector that is not there ends nothing.
func TestNobodyListens(t *testing.T) {
	for _, v := range tracing.Variables {
		t.Setenv(v, "")
	}
	start(t, io.Discard)()
	if request(http.MethodPut, nil); tracing.On() {
		t.Error("traces are made for nobody")
	}
	var log strings.Builder
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	stop := start(t, &log)
	request(http.MethodPut, nil)
	stop()
	if !strings.Contains(log.String(), "traces") {
		t.Errorf("the log says %q", log.String())
	}
}
