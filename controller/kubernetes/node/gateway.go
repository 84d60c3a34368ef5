package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
)

// gatewayKinds are those that say which pods serve Gateways.
var gatewayKinds = []client.Object{&gatewayv1.GatewayClass{}, &gatewayv1.Gateway{},
	&gatewayv1.TCPRoute{}, &gatewayv1.UDPRoute{}, &gatewayv1.ReferenceGrant{}}

// targets are what Gateways with addresses send to. Which routes attach, their status says.
func (d *Daemon) targets(ctx context.Context) (list []plan.Target, err error) {
	var classes gatewayv1.GatewayClassList
	var gateways gatewayv1.GatewayList
	var grants gatewayv1.ReferenceGrantList
	for _, o := range []client.ObjectList{&classes, &gateways, &grants} {
		if err := d.Cache.List(ctx, o, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	ours := map[gatewayv1.ObjectName]bool{}
	for i := range classes.Items {
		c := &classes.Items[i]
		ours[gatewayv1.ObjectName(c.Name)] = c.Spec.ControllerName == plan.GatewayController
	}
	routes, err := d.routes(ctx)
	if err != nil {
		return nil, err
	}
	around := plan.Around{Grants: grants.Items,
		Services: func(n types.NamespacedName) *corev1.Service {
			var s corev1.Service
			if d.Cache.Get(ctx, n, &s) != nil { // it has it or not
				return nil
			}
			return &s
		}}
	for i := range gateways.Items {
		g := &gateways.Items[i]
		if addresses := plan.Addresses(g); ours[g.Spec.GatewayClassName] && len(addresses) > 0 {
			around.Routes = routes[client.ObjectKeyFromObject(g)]
			p := plan.Gateway(g, around)
			list = append(list, p.Targets(podPrefix, g, around, addresses)...)
		}
	}
	return list, nil
}

// routes are those that a Gateway has accepted, by Gateway.
func (d *Daemon) routes(ctx context.Context) (map[types.NamespacedName][]*plan.Route, error) {
	of := map[types.NamespacedName][]*plan.Route{}
	add := func(r *plan.Route, status []gatewayv1.RouteParentStatus) {
		r = r.Accepted(status)
		for _, g := range r.Gateways() {
			of[g] = append(of[g], r)
		}
	}
	var tcp gatewayv1.TCPRouteList
	if err := d.Cache.List(ctx, &tcp, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range tcp.Items {
		add(plan.TCP(&tcp.Items[i]), tcp.Items[i].Status.Parents)
	}
	var udp gatewayv1.UDPRouteList
	if err := d.Cache.List(ctx, &udp, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range udp.Items {
		add(plan.UDP(&udp.Items[i]), udp.Items[i].Status.Parents)
	}
	return of, nil
}
