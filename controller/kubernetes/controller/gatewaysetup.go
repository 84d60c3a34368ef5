package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
)

// byGateway is the index of routes by the Gateways that they name.
const byGateway = "gateway"

// addGateways adds the controllers of the Gateway API, if the cluster has it.
func addGateways(m manager.Manager, s *state, d doors) error {
	if !s.GatewayAPI {
		return nil
	}
	for _, o := range []client.Object{&gatewayv1.TCPRoute{}, &gatewayv1.UDPRoute{}} {
		err := m.GetFieldIndexer().IndexField(context.Background(), o, byGateway,
			func(o client.Object) (list []string) {
				for _, n := range gatewaysOf(o) {
					list = append(list, n.String())
				}
				return list
			})
		if err != nil {
			return err
		}
	}
	err := ctrl.NewControllerManagedBy(m).Named("gatewayclass").For(&gatewayv1.GatewayClass{}).
		Complete(classes{s})
	if err != nil {
		return err
	}
	ofRoute := handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, o client.Object) []reconcile.Request {
			return requests(gatewaysOf(o))
		})
	ofService := handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, o client.Object) []reconcile.Request {
			return requests(s.usersOf(serviceOf(o)))
		})
	all := handler.EnqueueRequestsFromMapFunc(
		func(ctx context.Context, _ client.Object) []reconcile.Request {
			return requests(s.allGateways(ctx))
		})
	err = ctrl.NewControllerManagedBy(m).Named("gateway").For(&gatewayv1.Gateway{}).
		Watches(&gatewayv1.TCPRoute{}, ofRoute).Watches(&gatewayv1.UDPRoute{}, ofRoute).
		Watches(&corev1.Service{}, ofService).Watches(&discoveryv1.EndpointSlice{}, ofService).
		Watches(&gatewayv1.GatewayClass{}, all).Watches(&gatewayv1.ReferenceGrant{}, all).
		Watches(&corev1.Namespace{}, all).
		WatchesRawSource(d.gateways.source()).Complete(gateways{s})
	if err != nil {
		return err
	}
	if err := addRoutes(m, "tcproute", routes[*gatewayv1.TCPRoute]{s,
		func() *gatewayv1.TCPRoute { return &gatewayv1.TCPRoute{} },
		func(ctx context.Context) []*plan.Route { return s.tcpRoutes(ctx) }}); err != nil {
		return err
	}
	return addRoutes(m, "udproute", routes[*gatewayv1.UDPRoute]{s,
		func() *gatewayv1.UDPRoute { return &gatewayv1.UDPRoute{} },
		func(ctx context.Context) []*plan.Route { return s.udpRoutes(ctx) }})
}

// addRoutes adds the controller of a kind of routes.
func addRoutes[T routeObject](m manager.Manager, name string, r routes[T]) error {
	those := func(which func(*plan.Route, client.Object) bool) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, o client.Object) (list []reconcile.Request) {
				for _, one := range r.list(ctx) {
					if which(one, o) {
						list = append(list, reconcile.Request{NamespacedName: one.NamespacedName})
					}
				}
				return list
			})
	}
	all := those(func(*plan.Route, client.Object) bool { return true })
	ofGateway := those(func(r *plan.Route, o client.Object) bool {
		return slices.Contains(r.Gateways(), client.ObjectKeyFromObject(o))
	})
	ofService := those(func(r *plan.Route, o client.Object) bool {
		return slices.ContainsFunc(r.Backends, func(b gatewayv1.BackendRef) bool {
			return string(b.Name) == o.GetName()
		})
	})
	return ctrl.NewControllerManagedBy(m).Named(name).For(r.empty()).
		Watches(&gatewayv1.Gateway{}, ofGateway).Watches(&corev1.Service{}, ofService).
		Watches(&gatewayv1.GatewayClass{}, all).Watches(&gatewayv1.ReferenceGrant{}, all).
		Watches(&corev1.Namespace{}, all).Complete(r)
}

func gatewaysOf(o client.Object) []types.NamespacedName {
	r, _ := routeOf(o)
	if r == nil {
		return nil
	}
	return r.Gateways()
}

// serviceOf is a Service, or that of an EndpointSlice.
func serviceOf(o client.Object) types.NamespacedName {
	n := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	if s, ok := o.(*discoveryv1.EndpointSlice); ok {
		n.Name = s.Labels[discoveryv1.LabelServiceName]
	}
	return n
}

// allGateways are the Gateways of all classes.
func (s *state) allGateways(ctx context.Context) (names []types.NamespacedName) {
	var list gatewayv1.GatewayList
	if s.List(ctx, &list, client.UnsafeDisableDeepCopy) != nil {
		return nil // of a cache that ends
	}
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}

func requests(names []types.NamespacedName) (list []reconcile.Request) {
	for _, n := range names {
		list = append(list, reconcile.Request{NamespacedName: n})
	}
	return list
}

// objectOf is the name of an owner's object.
func objectOf(owner string) types.NamespacedName {
	_, key, _ := strings.Cut(owner, "/")
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
