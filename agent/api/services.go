package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"sextant/config"
)

// ServiceList is an answer with services: all that were asked for, or a page of them.
type ServiceList struct {
	Items []Service `json:"items"`
	// Continue asks for the next page; "": this is the last one.
	Continue string `json:"continue,omitempty"`
}

// servicesPage is how many names a page of services has, at most and of a client that wants all: a
// node that is edge and host may have two services of a name.
const servicesPage = 1000

// Services returns the services of a name and role; "" is all, page by page and in the order of
// their names.
func (c *Client) Services(ctx context.Context, name string, role Role) ([]Service, error) {
	all, query := []Service{}, url.Values{"name": {name}, "role": {string(role)}}
	if name == "" {
		query.Set("limit", strconv.Itoa(servicesPage))
	}
	for {
		page, err := ask[ServiceList](ctx, c, request{path: "/v1/services", query: query})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Continue <= query.Get("continue") { // names grow, so that there is an end
			return all, nil
		}
		query.Set("continue", page.Continue)
	}
}

// ServiceName names a service of the node in one of its roles.
type ServiceName struct {
	Name     string `json:"name"`
	Role     Role   `json:"role"`
	Endpoint string `json:"endpoint"` // what clients connect to: address, port and protocol
}

// ServiceNames names all services, in the order of their names. Unlike Services it reads no
// counters, and has an answer at once.
func (c *Client) ServiceNames(ctx context.Context) ([]ServiceName, error) {
	return items[ServiceName](ctx, c, request{path: "/v1/names"})
}

func (h handler) names(r *http.Request) (any, error) {
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	list := List[ServiceName]{Items: []ServiceName{}}
	if node.Edge != nil {
		for _, s := range node.Edge.Services {
			list.Items = append(list.Items, ServiceName{s.Name, Edge, s.Endpoint.String()})
		}
	}
	if node.Host != nil {
		for _, s := range node.Host.Services {
			list.Items = append(list.Items, ServiceName{s.Name, Host, s.Endpoint.String()})
		}
	}
	slices.SortFunc(list.Items, func(a, b ServiceName) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Role, b.Role))
	})
	return list, nil
}

// Backends returns the backends of a service; "" is all, in the order of the services' names.
func (c *Client) Backends(ctx context.Context, service string) ([]Backend, error) {
	if service != "" {
		list, err := ask[List[Backend]](ctx, c, request{path: "/v1/backends",
			query: url.Values{"service": {service}}})
		return list.Items, err
	}
	services, err := c.Services(ctx, "", Edge)
	all := []Backend{}
	for _, s := range services {
		all = append(all, s.Edge.Backends...)
	}
	return all, err
}

func (h handler) services(r *http.Request) (any, error) {
	if r.URL.Query().Has("limit") || r.URL.Query().Has("continue") {
		return h.pageOfServices(r)
	}
	services, err := h.agent.Services(r.Context(), named(r.FormValue("name"))...)
	return ServiceList{Items: ofRole(services, Role(r.FormValue("role")))}, err
}

// ofRole returns the services of a role; "": all.
func ofRole(services []Service, role Role) []Service {
	wanted := []Service{}
	for _, s := range services {
		if role == "" || s.Role == role {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// pageOfServices answers with services in the order of their names, those behind the one that
// the page before ended with: what stays while pages are asked for is in one of them.
func (h handler) pageOfServices(r *http.Request) (any, error) {
	limit, err := Limit(r, servicesPage, servicesPage)
	if err != nil {
		return nil, err
	}
	if r.FormValue("name") != "" {
		return nil, invalid("a name asks for one service, limit and continue for a page; leave " +
			"one of them out")
	}
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	role, page := Role(r.FormValue("role")), ServiceList{Items: []Service{}}
	names := servicesBehind(node, role, r.FormValue("continue"))
	if len(names) > limit {
		names = names[:limit]
		page.Continue = names[limit-1]
	}
	if len(names) == 0 {
		return page, nil
	}
	services, err := h.agent.Services(r.Context(), names...)
	page.Items = ofRole(services, role)
	slices.SortFunc(page.Items, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Role, b.Role))
	})
	return page, err
}

// servicesBehind returns the names of services behind one, in their order.
func servicesBehind(node *config.Node, role Role, last string) (names []string) {
	add := func(of Role, name string) {
		if (role == "" || role == of) && name > last {
			names = append(names, name)
		}
	}
	if node.Edge != nil {
		for _, s := range node.Edge.Services {
			add(Edge, s.Name)
		}
	}
	if node.Host != nil {
		for _, s := range node.Host.Services {
			add(Host, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
