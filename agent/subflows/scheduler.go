package subflows

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// For how long the controller holds the path of a subflow, how often it is asked again, and how
// long an answer may take.
const (
	held    = 30 * time.Second
	renewed = 10 * time.Second
	patient = 5 * time.Second
)

// placement is what a controller is asked, and answers, of a subflow.
type placement struct {
	Name    string   `json:"name"`
	Flow    api.Flow `json:"flow"`
	Seconds float64  `json:"seconds"`
	Path    []string `json:"path,omitempty"`
	Moved   bool     `json:"moved,omitempty"`
}

// scheduler asks a controller for the paths of subflows. What it says is a request that is made
// again: without the controller, connections go on with what they have.
type scheduler struct {
	dial   func() (*api.Client, error)
	client *api.Client       // nil: it is made when it is used
	at     time.Time         // of the last renewal
	routes map[string]string // by name of the subflow
}

// ask makes a request. After an error the client is made anew: its files may be others.
func ask[A any](ctx context.Context, s *scheduler, method string, body any) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	if s.client == nil {
		if s.client, err = s.dial(); err != nil {
			return answer, err
		}
	}
	answer, err = api.Ask[A](ctx, s.client, method, "/v1/elephants", nil, body)
	if err != nil {
		s.client = nil
	}
	return answer, err
}

// place asks for paths: all or, with an error, none.
func (s *scheduler) place(ctx context.Context, list []Subflow) ([]placement, error) {
	var asked api.List[placement]
	for _, one := range list {
		asked.Items = append(asked.Items, placement{Name: one.Name(), Seconds: held.Seconds(),
			Flow: api.Flow{Source: one.Local, Destination: one.Remote, Protocol: config.TCP}})
	}
	out, err := ask[api.List[placement]](ctx, s, http.MethodPut, asked)
	if err != nil {
		return nil, err
	}
	for _, answer := range out.Items {
		s.routes[answer.Name] = strings.Join(answer.Path, " ")
	}
	return out.Items, nil
}

// give returns the subflows that get paths, with the ports that take these. Each connection is
// asked for by itself: one to a host that the controller does not know holds up no other. The error
// is the first one.
func (s *scheduler) give(ctx context.Context, due []Subflow) (found []Subflow, failed error) {
	for ctx.Err() == nil && len(due) > 0 {
		one := due
		if i := slices.IndexFunc(due, func(s Subflow) bool {
			return s.Token != due[0].Token
		}); i > 0 {
			one = due[:i]
		}
		due = due[len(one):]
		answers, err := s.place(ctx, one)
		if failed == nil {
			failed = err
		}
		for i, answer := range answers[:min(len(answers), len(one))] {
			given := one[i]
			given.Local = netip.AddrPortFrom(given.Local.Addr(), answer.Flow.Source.Port())
			found = append(found, given)
		}
	}
	return found, failed
}

// release takes the paths of subflows back.
func (s *scheduler) release(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		delete(s.routes, name)
	}
	_, err := ask[struct{}](ctx, s, http.MethodDelete, map[string][]string{"names": names})
	return err
}

// renew asks for the paths of open subflows again, now and then, and returns those that are to have
// another one.
func (s *scheduler) renew(ctx context.Context, open []Subflow) (moved []Subflow, err error) {
	if time.Since(s.at) < renewed || len(open) == 0 {
		return nil, nil
	}
	s.at = time.Now()
	answers, err := s.place(ctx, open)
	for i, answer := range answers[:min(len(answers), len(open))] {
		if answer.Moved {
			moved = append(moved, open[i])
		}
	}
	return moved, err
}
