package controller

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
)

// A routeObject is a TCPRoute or a UDPRoute.
type routeObject interface {
	client.Object
	*gatewayv1.TCPRoute | *gatewayv1.UDPRoute
}

// routeOf reads a route, with the part of its status that we write into.
func routeOf(o client.Object) (*plan.Route, *gatewayv1.RouteStatus) {
	switch r := o.(type) {
	case *gatewayv1.TCPRoute:
		return plan.TCP(r), &r.Status.RouteStatus
	case *gatewayv1.UDPRoute:
		return plan.UDP(r), &r.Status.RouteStatus
	}
	return nil, nil
}

// routes writes the status of routes of one kind.
type routes[T routeObject] struct {
	*state
	empty func() T
	list  func(context.Context) []*plan.Route
}

// Reconcile brings the status of a route up to date.
func (r routes[T]) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	o := r.empty()
	if err := r.Get(ctx, q.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	route, status := routeOf(o)
	around, err := r.neighbours(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var failed error
	next := plan.RouteStatus(route, status.Parents,
		func(n types.NamespacedName) *gatewayv1.Gateway {
			g, err := r.ourGateway(ctx, n)
			if err != nil {
				failed = err
			}
			return g
		}, around)
	if failed != nil || reflect.DeepEqual(next, status.Parents) ||
		len(next) == 0 && len(status.Parents) == 0 {
		return reconcile.Result{}, failed
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return reconcile.Result{}, nil
	}
	plan.StampRoute(next, metav1.Now())
	status.Parents = next
	err = r.Status().Patch(ctx, o, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // it comes again as it is now
	}
	return reconcile.Result{}, err
}

// classes accepts GatewayClasses.
type classes struct{ *state }

// features are what conformance tests may ask of us, in the order of their names.
var features = []gatewayv1.FeatureName{"Gateway", "ReferenceGrant", "TCPRoute", "UDPRoute"}

// Reconcile accepts a class that names us, unless it wants parameters.
func (r classes) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	var c gatewayv1.GatewayClass
	if err := r.Get(ctx, q.NamespacedName, &c); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if c.Spec.ControllerName != plan.GatewayController {
		return reconcile.Result{}, nil
	}
	next := c.DeepCopy()
	plan.AcceptClass(next)
	next.Status.SupportedFeatures = nil
	for _, f := range features {
		next.Status.SupportedFeatures = append(next.Status.SupportedFeatures,
			gatewayv1.SupportedFeature{Name: f})
	}
	if reflect.DeepEqual(next.Status, c.Status) {
		return reconcile.Result{}, nil
	}
	plan.StampClass(next, metav1.Now())
	err := r.Status().Patch(ctx, next, client.MergeFrom(&c))
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
