package httpserver

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// probeTimeout is how long a probe waits for the daemon's event loop.
const probeTimeout = 2 * time.Second

// HandleProbes answers the probes of a machine's manager in plain text. /healthz: 200 as long as
// the daemon's event loop answers, 503 otherwise. /readyz: 200 if it does and names no shortfall,
// 503 with the shortfalls, one a line, otherwise.
func HandleProbes(mux *http.ServeMux, shortfalls func(context.Context) ([]string, error)) {
	probe := func(ready bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
			defer cancel()
			missing, err := shortfalls(ctx)
			status, text := http.StatusOK, "ok\n"
			switch {
			case err != nil:
				status, text = http.StatusServiceUnavailable, "no answer: "+err.Error()+"\n"
			case ready && len(missing) > 0:
				status = http.StatusServiceUnavailable
				text = strings.Join(missing, "\n") + "\n"
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text)) // a client that is gone needs no answer
		}
	}
	mux.Handle("GET /healthz", probe(false))
	mux.Handle("GET /readyz", probe(true))
}
