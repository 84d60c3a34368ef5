package e2e_test

import (
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
)

// A Gateway with a route to a Service becomes a virtual address that works.
func (w *world) testGateway() {
	begun := time.Now()
	w.create(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "sextant"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: plan.GatewayController}})
	g := &gatewayv1.Gateway{ObjectMeta: objectMeta("front"),
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "sextant",
			Listeners: []gatewayv1.Listener{{Name: "web", Protocol: "TCP", Port: 8088}}}}
	w.create(g)
	r := &gatewayv1.TCPRoute{ObjectMeta: objectMeta("front")}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "front"}}
	ref := gatewayv1.BackendRef{}
	ref.Name, ref.Port = "web", new(int32(80))
	r.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{ref}}}
	w.create(r)
	u := &gatewayv1.UDPRoute{ObjectMeta: objectMeta("front")} // which no listener takes
	u.Spec.ParentRefs = r.Spec.ParentRefs
	u.Spec.Rules = []gatewayv1.UDPRouteRule{{BackendRefs: r.Spec.Rules[0].BackendRefs}}
	w.create(u)
	w.eventually("the Gateway has addresses", 60*time.Second, func() bool {
		must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default",
			Name: "front"}, g))
		return len(g.Status.Addresses) == 2
	})
	for _, a := range g.Status.Addresses {
		url := fmt.Sprintf("http://%s/", net.JoinHostPort(a.Value, "8088"))
		w.eventually(url+" answers", 60*time.Second, func() bool {
			_, err := w.get(url)
			return err == nil
		})
		w.t.Logf("%s answers after %v", url, time.Since(begun))
	}
	w.eventually("the other route is refused", 60*time.Second, func() bool {
		must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default",
			Name: "front"}, u))
		return len(u.Status.Parents) == 1 &&
			u.Status.Parents[0].Conditions[0].Reason == "NotAllowedByListeners"
	})
}
