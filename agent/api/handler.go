package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sextant/config"
	"sextant/packet/srv6"
)

// Agent is what the handler needs of the agent. Its errors may be *Error, or
// wrap one of config.ErrNotFound, config.ErrConflict and config.ErrInvalid;
// others are internal. All methods may be called at the same time.
type Agent interface {
	// Status returns what runs.
	Status(context.Context) (Status, error)
	// Services returns the services of the names with their counters, without names all: those of
	// the edge in the order of the configuration, then the host's.
	Services(ctx context.Context, names ...string) ([]Service, error)
	// Counters returns one set per role, edge first. All reasons are there, zeros too.
	Counters(context.Context) ([]Counters, error)
	// Maps returns what the kernel holds.
	Maps(context.Context) ([]Map, error)
	// DumpMap returns at most limit entries of a map of a role, "": of the first that has one of
	// that name.
	DumpMap(ctx context.Context, role Role, name string, limit int) ([]MapEntry, error)
	// Policies returns the SR policies of a head-end, those of the node file first; none on a node
	// that is no head-end.
	Policies(context.Context) ([]Policy, error)
	// MarkList takes a segment list of a policy that no node file has out of use, or back into it,
	// and returns what changed.
	MarkList(ctx context.Context, policy, list string, down bool) ([]config.Change, error)
	// FlowPaths returns the flows of a head-end that have paths of their own.
	FlowPaths(context.Context) ([]FlowPath, error)
	// SetFlowPath gives a flow a path in front of the head-end's rules, or another one.
	SetFlowPath(context.Context, FlowPath) error
	// RemoveFlowPath lets the rules choose for a flow again.
	RemoveFlowPath(context.Context, Flow) error
	// Merge returns the protected flows whose egress the node is, in the order of the
	// configuration.
	Merge(context.Context) ([]MergedFlow, error)
	// Config returns the running configuration, which the caller does not change.
	Config(context.Context) (*config.Node, error)
	// Change makes the configuration that edit returns the running one and returns what differs.
	// Edit is called once, with the running configuration, and nothing else changes it meanwhile.
	Change(ctx context.Context, edit func(*config.Node) (*config.Node, error)) (
		[]config.Change, error)
	// Replace makes the node that read returns the running one, as Change does; where it can't,
	// metrics say that the last reload failed. With dryRun all is checked, but nothing is changed.
	Replace(ctx context.Context, read func() (*config.Node, error),
		dryRun bool) ([]config.Change, error)
	// Trace tells what an edge does with a flow.
	Trace(context.Context, Flow) (Trace, error)
	// Explain tells what the data plane does with packets, by running the loaded program on them.
	Explain(context.Context, Question) ([]Explanation, error)
	// Capture copies packets while it runs: it calls begin when it has begun, then each with those
	// that are wanted, and ends with the context or an error of theirs.
	Capture(ctx context.Context, want Capture, begin func() error,
		each func([]CapturedPacket) error) error
	// BGPPeers returns the BGP neighbors in the order of their addresses; none on a node that
	// speaks no BGP.
	BGPPeers(context.Context) ([]BGPPeer, error)
	// BGPRoutes returns the routes to VIPs, those that the node announces first.
	BGPRoutes(context.Context) ([]BGPRoute, error)
	// Protections returns all protections, in the order of the configuration.
	Protections(context.Context) ([]Protection, error)
	// Protect adds a protection, if the topology has paths for it; with dryRun it only says what it
	// would be.
	Protect(ctx context.Context, name string, spec ProtectionSpec, dryRun bool) (Protection, error)
	// Topology returns the network that protections are computed on.
	Topology(context.Context) (Topology, error)
	// Routes returns the routes of VRFs, in the order of the configuration and of their prefixes.
	Routes(context.Context) ([]Route, error)
	// RouteSources returns who tells of them.
	RouteSources(context.Context) ([]RouteSource, error)
	// NextHops returns the destinations of a router among whose next hops sources choose, in the
	// order of their prefixes; none on a node that is no such router.
	NextHops(context.Context) ([]NextHops, error)
	// Subflows returns the MPTCP connections that the host has opened, by token; none on a node
	// without role subflows.
	Subflows(context.Context) ([]MPTCPConnection, error)
	Historian
	// Events returns what has happened to services and backends after the event of a number, 0: all
	// that is remembered.
	Events(ctx context.Context, after uint64) ([]Event, error)
	// Metrics serves Prometheus.
	Metrics() http.Handler
}

// breakFlag is the parameter of a write by which connections may end.
const breakFlag = "breakConnections"

type breakKey struct{}

// breaking is a request by which connections may end.
func breaking(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), breakKey{}, true))
}

// MayBreakConnections reports whether the request for a change permits that connections end.
func MayBreakConnections(ctx context.Context) bool { return ctx.Value(breakKey{}) != nil }

// maxBody bounds what a request may send, in bytes: more than a node file may have.
const maxBody = 32 << 20

// Bounds and default of the monitor's interval.
const (
	minInterval     = 100 * time.Millisecond
	maxInterval     = time.Minute
	defaultInterval = time.Second
)

// NewHandler serves the API of an agent.
func NewHandler(agent Agent) http.Handler {
	return lowered(Serve("agent/api", title, endpoints(handler{agent, agent.Metrics(),
		newSamples(agent)})))
}

// Mux answers requests by their patterns, as http.ServeMux has them, with JSON: a value, or an
// error as its kind says. Other paths are refused; the documentation of the named package lists
// them.
func Mux(documented string, answers map[string]func(*http.Request) (any, error)) *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			breaks, err := FlagOf(r, breakFlag)
			if err != nil {
				writeError(w, err)
				return
			}
			if breaks {
				r = breaking(r)
			}
			r = matching(r)
			if value, err := answer(r); err != nil {
				writeError(w, err)
			} else {
				writeJSON(w, http.StatusOK, value)
			}
		})
	}
	for pattern, answer := range answers {
		handle(pattern, answer)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, unserved(w, r, mux, documented))
	})
	return mux
}

type handler struct {
	agent   Agent
	metrics http.Handler
	samples *samples
}

func (h handler) scrape(w http.ResponseWriter, r *http.Request) { h.metrics.ServeHTTP(w, r) }

func (h handler) status(r *http.Request) (any, error) { return h.agent.Status(r.Context()) }

// named is what a parameter restricts an answer to.
func named(parameter string) []string {
	if parameter == "" {
		return nil
	}
	return []string{parameter}
}

func (h handler) backends(r *http.Request) (any, error) {
	services, err := h.agent.Services(r.Context(), named(r.FormValue("service"))...)
	if err != nil {
		return nil, err
	}
	list := List[Backend]{Items: []Backend{}}
	for _, s := range services {
		if s.Edge != nil {
			list.Items = append(list.Items, s.Edge.Backends...)
		}
	}
	return list, nil
}

func (h handler) sids(r *http.Request) (any, error) {
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	list := List[SID]{Items: []SID{}}
	if node.Host != nil {
		for _, s := range node.Host.SIDs {
			list.Items = append(list.Items, SID{s.Prefix, s.Behavior.String()})
		}
	}
	if node.Merge != nil {
		for _, s := range node.Merge.SIDs {
			if sid := (SID{s.Prefix, srv6.EndMERGE.String()}); !slices.Contains(list.Items, sid) {
				list.Items = append(list.Items, sid)
			}
		}
	}
	return list, nil
}

func (h handler) maps(r *http.Request) (any, error) {
	maps, err := h.agent.Maps(r.Context())
	return List[Map]{Items: notNull(maps)}, err
}

func (h handler) counters(r *http.Request) (any, error) {
	counters, err := h.agent.Counters(r.Context())
	return List[Counters]{Items: notNull(counters)}, err
}

// config answers with the node file, without the secret unless it is asked for.
func (h handler) config(w http.ResponseWriter, r *http.Request) {
	node, err := h.agent.Config(r.Context())
	writeNode(w, r, node, err)
}

// writeNode answers with a node file, without the secret unless it is asked for.
func writeNode(w http.ResponseWriter, r *http.Request, node *config.Node, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	fingerprint, err := config.Fingerprint(node)
	if err != nil {
		writeError(w, err)
		return
	}
	secrets, err := FlagOf(r, "secrets")
	if err == nil && secrets {
		err = Require(r.Context(), Admin)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("ETag", `"`+fingerprint+`"`)
	if !secrets {
		node = config.Redact(node)
	}
	w.Header().Set("Vary", "Accept")
	if accepts(r, "application/json") {
		text, err := config.MarshalAsJSON(node)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, json.RawMessage(text))
		return
	}
	text, err := config.Marshal(node)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	// A client that is gone needs no answer.
	_, _ = w.Write(text)
}

// monitor sends a sample at once and then one per interval until the client leaves.
func (h handler) monitor(w http.ResponseWriter, r *http.Request) {
	interval, err := intervalOf(r.FormValue("intervalMs"))
	if err != nil {
		writeError(w, err)
		return
	}
	source, err := h.eventSource(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	seen, given, err := source.resumed(r)
	if err == nil && !given {
		seen, err = h.lastEvent(r.Context())
	}
	if err != nil {
		writeError(w, err)
		return
	}
	sample, err := h.sample(r.Context(), &seen)
	if err != nil {
		writeError(w, err)
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var sent time.Time // when what was sent last was taken
	for out := newStream(w, r); ; {
		if sample.Time.After(sent) || len(sample.Events) > 0 {
			if out.sendAs(source.id(seen), sample) != nil {
				return
			}
			sent = sample.Time
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		if sample, err = h.sample(r.Context(), &seen); err != nil {
			// The stream has begun; the error is its last line.
			_ = out.send(errorBody{errorOf(err)})
			return
		}
	}
}

// sample also moves seen, the number of the last event that the client was told of.
func (h handler) sample(ctx context.Context, seen *uint64) (Sample, error) {
	out, err := h.samples.take(ctx)
	if err != nil {
		return Sample{}, err
	}
	out.Events, err = h.agent.Events(ctx, *seen)
	if len(out.Events) > 0 {
		*seen = out.Events[len(out.Events)-1].Number
	}
	return out, err
}

// lastEvent is the number of the latest event; 0: there is none.
func (h handler) lastEvent(ctx context.Context) (uint64, error) {
	events, err := h.agent.Events(ctx, 0)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[len(events)-1].Number, nil
}

func intervalOf(text string) (time.Duration, error) {
	if text == "" {
		return defaultInterval, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err == nil && ms >= minInterval.Milliseconds() && ms <= maxInterval.Milliseconds() {
		return time.Duration(ms) * time.Millisecond, nil
	}
	return 0, invalid(fmt.Sprintf("intervalMs %q is out of range; write %d to %d", text,
		minInterval.Milliseconds(), maxInterval.Milliseconds()))
}

// methods are those that paths are served by.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete}

// unserved is the error of a request that no pattern has: of the path, or of its method alone,
// with those that would do in the answer (RFC 9110 section 15.5.6).
func unserved(w http.ResponseWriter, r *http.Request, mux *http.ServeMux,
	documented string) *Error {
	allowed := slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
		other := r.Clone(r.Context())
		other.Method = method
		_, pattern := mux.Handler(other)
		return pattern == "/"
	})
	if len(allowed) == 0 {
		return &Error{NotFound,
			fmt.Sprintf("there is no %s %s; the paths are in the documentation of package %s",
				r.Method, r.URL.Path, documented)}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return &Error{NoMethod, fmt.Sprintf("%s answers no %s; use %s", r.URL.Path, r.Method,
		strings.Join(allowed, ", "))}
}

// ReadJSON reads a request's body; an empty one is the zero value.
func ReadJSON(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decodeWhole(decoder, into); err != nil && !errors.Is(err, io.EOF) {
		return invalid(fmt.Sprintf("the body is not the JSON that is wanted here: %v; correct it",
			err))
	}
	return nil
}

// decodeWhole reads one value, behind which nothing is but white space. The error is io.EOF if
// there is no value.
func decodeWhole(d *json.Decoder, into any) error {
	if err := d.Decode(into); err != nil {
		return err
	}
	switch _, err := d.Token(); {
	case err == nil:
		return errors.New("there is more behind its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("behind its end: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_ = json.NewEncoder(w).Encode(value)
}

func writeError(w http.ResponseWriter, err error) {
	e := errorOf(err)
	writeJSON(w, httpStatus[e.Code], errorBody{e})
}

// notNull makes an empty list [] in JSON instead of null.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
