package controller

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sextant/controller/kubernetes/address"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/v1alpha1"
)

// byService is the index of EndpointSlices by the Service that they are of.
const byService = "service"

const (
	workers         = 8
	poolStatusEvery = 10 * time.Second
)

// recorder names the controller in events.
const recorder = "sextant-kubernetes"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// doors let what happens elsewhere have objects looked at.
type doors struct {
	services, gateways, edges, peerings door
}

// door adds to a queue that there is once its controller has started.
type door struct{ ready chan queue }

func newDoor() door { return door{make(chan queue, 1)} }

// source is what gives the queue.
func (d door) source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		d.ready <- q
		return nil
	})
}

func (d door) add(n types.NamespacedName) {
	select {
	case q := <-d.ready:
		d.ready <- q
		q.Add(reconcile.Request{NamespacedName: n})
	default: // all objects are looked at when it starts
	}
}

// Add adds all controllers to a manager.
func Add(m manager.Manager, c Config) error {
	d := doors{newDoor(), newDoor(), newDoor(), newDoor()}
	s := &state{Config: c, Client: m.GetClient(), hosts: newHosts(),
		voice: newVoice(m.GetScheme(), m.GetClient(), d.owner), book: address.NewBook(),
		pending: map[string]bool{}, serves: map[string]string{},
		held: map[string][]string{}, users: map[types.NamespacedName]map[string]bool{},
		since: map[string]time.Time{}, look: d.owner}
	s.board = edges.NewBoard(c.Prefix, d.owner)
	err := m.GetFieldIndexer().IndexField(context.Background(), &discoveryv1.EndpointSlice{},
		byService, func(o client.Object) []string {
			return []string{o.GetLabels()[discoveryv1.LabelServiceName]}
		})
	if err != nil {
		return err
	}
	for _, add := range []func(manager.Manager, *state, doors) error{
		addServices, addGateways, addEdges, addPools, addBGP,
	} {
		if err := add(m, s, d); err != nil {
			return err
		}
	}
	if err := m.Add(manager.RunnableFunc(s.voice.run)); err != nil {
		return err
	}
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		s.board.Stop()
		return nil
	}))
}

// owner has an owner be looked at.
func (d doors) owner(owner string) {
	door := d.services
	if strings.HasPrefix(owner, ofGateway) {
		door = d.gateways
	}
	door.add(objectOf(owner))
}

func addServices(m manager.Manager, s *state, d doors) error {
	return ctrl.NewControllerManagedBy(m).Named("service").For(&corev1.Service{}).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, o client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: serviceOf(o)}}
			})).
		Watches(&v1alpha1.Host{}, hostHandler{s, d}).
		WatchesMetadata(&corev1.Node{}, nodeHandler(s, d)).
		WatchesRawSource(d.services.source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(services{s})
}

func addEdges(m manager.Manager, s *state, d doors) error {
	r := &edgeReconciler{state: s, enqueue: d.edges.add, keys: map[string]edgeKey{},
		reports: map[string]edges.Report{}}
	return ctrl.NewControllerManagedBy(m).Named("edge").For(&v1alpha1.Edge{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, o client.Object) (list []reconcile.Request) {
				var all v1alpha1.EdgeList
				if o.GetNamespace() != s.Namespace || s.List(ctx, &all) != nil {
					return nil
				}
				for _, e := range all.Items {
					if e.Spec.SecretName == o.GetName() {
						list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{
							Name: e.Name}})
					}
				}
				return list
			})).
		WatchesRawSource(d.edges.source()).Complete(r)
}

func addPools(m manager.Manager, s *state, d doors) error {
	all := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		claims, err := s.claims(context.Background())
		if err != nil {
			return // of a cache that ends
		}
		for _, c := range claims {
			d.owner(c.Owner)
		}
	}
	return ctrl.NewControllerManagedBy(m).Named("vippool").For(&v1alpha1.VIPPool{}).
		Complete(poolReconciler{s, all})
}

func samePools(a, b []*address.Pool) bool {
	return slices.EqualFunc(a, b, func(x, y *address.Pool) bool { return reflect.DeepEqual(x, y) })
}

// hostHandler has those be looked at for whom a node says something new.
type hostHandler struct {
	s *state
	d doors
}

func (h hostHandler) set(name string, status *v1alpha1.HostStatus) {
	for owner := range h.s.ownersOf(h.s.hosts.set(name, status)) {
		h.d.owner(owner)
	}
}

// Create is what handler.EventHandler says, as the others are.
func (h hostHandler) Create(_ context.Context, e event.CreateEvent, _ queue) {
	h.set(e.Object.GetName(), statusOf(e.Object))
}

// Update is like Create.
func (h hostHandler) Update(_ context.Context, e event.UpdateEvent, _ queue) {
	h.set(e.ObjectNew.GetName(), statusOf(e.ObjectNew))
}

// Delete forgets what a node said.
func (h hostHandler) Delete(_ context.Context, e event.DeleteEvent, _ queue) {
	h.set(e.Object.GetName(), nil)
}

// Generic does not happen.
func (h hostHandler) Generic(context.Context, event.GenericEvent, queue) {}

func statusOf(o client.Object) *v1alpha1.HostStatus {
	if host, ok := o.(*v1alpha1.Host); ok {
		return &host.Status
	}
	return nil
}
