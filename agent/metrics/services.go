package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/monitoring"
	"sextant/config"
)

var (
	servicePackets = wideCounter("service_packets_total",
		"IP packets of a service: sent to backends (edge) or taken (host).",
		"role", "service", "family")
	serviceBytes = wideCounter("service_bytes_total",
		"Bytes of the same packets, without encapsulation.", "role", "service", "family")
	backendPackets = wideCounter("backend_packets_total", "IP packets offered to a backend first.",
		"service", "backend")
	backendBytes = wideCounter("backend_bytes_total",
		"Bytes of the same packets, without encapsulation.", "service", "backend")
	serviceBackends = wideGauge("service_backends",
		"Backends of a service, by whether they take new connections.", "service", "state")
	serviceFailing = wideGauge("service_failing_backends",
		"Backends of a service whose health checks fail.", "service")
	uncounted = wideCounter("service_uncounted_packets_total",
		"IP packets of a service offered first to backends that have no counter of their own: "+
			"there are too many.", "service")
	checksTotal = wideCounter("backend_checks_total", "Health checks of a backend.", "service",
		"backend", "result")
	backendHealthy = wideGauge("backend_healthy", "Whether a backend's health checks succeed.",
		"service", "backend")
	servicePanic = wideGauge("service_panic",
		"Whether so few backends are healthy that all that should be up are used.", "service")
	backendUp = wideGauge("backend_up", "Whether a backend takes new connections.",
		"service", "backend")
	backendWeight = wideGauge("backend_weight",
		"A backend's share of new connections in relation to the others.", "service", "backend")
	busyGauge = wideGauge("service_busy_connections",
		"How busy a service is on this host: open connections, or its load if it names another.",
		"service", "family")
	thresholdGauge = wideGauge("accept_threshold",
		"Below how many open connections this host accepts a new one.", "service", "family")
	offersTotal = wideCounter("offers_total",
		"Connections that were opened towards this host, by what it decided.",
		"service", "family", "decision")
	newConnectionRate = wideGauge("new_connections_limit",
		"How many TCP connections may be opened to a service per second at this edge.",
		"service")
	newConnectionsSeen = wideCounter("new_connections_total",
		"SYNs to a service with such a limit, by what became of them.",
		"service", "decision")
	establishedTotal = wideCounter("established_connections_total",
		"TCP connections established on this host, by service.",
		"service", "family")
	resetsTotal = wideCounter("resets_total", "TCP resets that this host sent for a service.",
		"service", "family")
	synAcksTotal = wideCounter("learning_syn_acks_total",
		"SYN-ACKs that edges with a flow cache asked for, by the way that they took.",
		"service", "family", "way")
	passedOnTotal = wideCounter("passed_on_packets_total",
		"IP packets of a service that were passed on to the next candidate.",
		"service", "family")
	checkSeconds = defineWide(monitoring.Histogram, "backend_check_duration_seconds",
		"Durations of a backend's health checks.", "service", "backend")
)

func family(s *api.Service) string {
	if s.VIP.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// detail is how finely metrics tell: a service of ten backends has 47 series, with health checks
// 239.
type detail string

const (
	detailNode    detail = "node"
	detailService detail = "service"
	detailBackend detail = "backend"
)

// detailOf reads what a scrape asks for; nothing is all there is.
func detailOf(r *http.Request) (detail, error) {
	switch d := detail(r.URL.Query().Get("detail")); d {
	case "":
		return detailBackend, nil
	case detailNode, detailService, detailBackend:
		return d, nil
	default:
		return "", fmt.Errorf("detail %q is unknown; write node, service or backend", d)
	}
}

// servicesPage has the metrics of services, and of backends in the order in which they are shown:
// they need no sorting then.
func servicesPage(services []api.Service, d detail) page {
	p := page{}
	services = slices.Clone(services)
	slices.SortStableFunc(services, func(a, b api.Service) int {
		return strings.Compare(a.Name, b.Name)
	})
	var backends []*api.Backend
	for i := range services {
		p.addService(&services[i])
		if s := &services[i]; s.Edge != nil && d == detailBackend {
			for j := range s.Edge.Backends {
				backends = append(backends, &s.Edge.Backends[j])
			}
		}
	}
	slices.SortStableFunc(backends, func(a, b *api.Backend) int {
		return strings.Compare(a.Name, b.Name) // then by service, as they are
	})
	for _, w := range []*wide{backendPackets, backendBytes, backendUp, backendWeight} {
		p[w] = make([]series, 0, len(backends))
	}
	for _, b := range backends {
		p.add(backendPackets, float64(b.Packets), b.Service, b.Name)
		p.add(backendBytes, float64(b.Bytes), b.Service, b.Name)
		p.add(backendUp, OneIf(b.Effective == config.Up), b.Service, b.Name)
		p.addHealth(b)
		p.add(backendWeight, float64(b.Weight), b.Service, b.Name)
	}
	return p
}

func (p page) addService(s *api.Service) {
	p.add(servicePackets, float64(s.Packets), string(s.Role), s.Name, family(s))
	p.add(serviceBytes, float64(s.Bytes), string(s.Role), s.Name, family(s))
	if s.Edge != nil {
		p.addBackends(s)
		if n := s.Edge.NewConnections; n != nil {
			p.add(newConnectionRate, float64(n.Rate), s.Name)
			p.add(newConnectionsSeen, float64(n.Taken), s.Name, "taken")
			p.add(newConnectionsSeen, float64(n.Refused), s.Name, "refused")
		}
		p.add(uncounted, float64(s.Edge.UncountedPackets), s.Name)
	}
	if h := s.Host; h != nil {
		p.add(busyGauge, float64(h.Busy), s.Name, family(s))
		p.add(thresholdGauge, float64(h.Threshold), s.Name, family(s))
		p.add(offersTotal, float64(h.Accepted), s.Name, family(s), "accepted")
		p.add(offersTotal, float64(h.Refused), s.Name, family(s), "refused")
		p.add(offersTotal, float64(h.Forced), s.Name, family(s), "forced")
		p.add(establishedTotal, float64(h.Established), s.Name, family(s))
		p.add(resetsTotal, float64(h.Resets), s.Name, family(s))
		p.add(synAcksTotal, float64(h.ByEdge), s.Name, family(s), "by_edge")
		p.add(synAcksTotal, float64(h.NotRouted), s.Name, family(s), "not_routed")
		p.add(passedOnTotal, float64(h.PassedOnPackets), s.Name, family(s))
	}
}

// addBackends adds how many backends of each kind a service has: none is what alerts look for.
func (p page) addBackends(s *api.Service) {
	states, failing := map[config.BackendState]int{}, 0
	for i := range s.Edge.Backends {
		b := &s.Edge.Backends[i]
		states[b.Effective]++
		if b.Health != nil && b.Health.Status == health.Failing.String() {
			failing++
		}
	}
	for _, state := range []config.BackendState{config.Up, config.Draining, config.Down,
		config.Maintenance} {
		p.add(serviceBackends, float64(states[state]), s.Name, string(state))
	}
	if s.Edge.Check != "" {
		p.add(servicePanic, OneIf(s.Edge.Panic), s.Name)
		p.add(serviceFailing, float64(failing), s.Name)
	}
}

func (p page) addHealth(b *api.Backend) {
	h := b.Health
	if h == nil {
		return
	}
	p.addDurations(checkSeconds, &h.Durations, b.Service, b.Name)
	p.add(backendHealthy, OneIf(h.Status == health.Healthy.String()), b.Service, b.Name)
	p.add(checksTotal, float64(h.SucceededChecks), b.Service, b.Name, "success")
	p.add(checksTotal, float64(h.FailedChecks), b.Service, b.Name, "failure")
}
