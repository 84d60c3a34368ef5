package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// AnnotationLocator is on Nodes: the prefix of the node's segment identifiers.
const AnnotationLocator = v1alpha1.Group + "/locator"

// A Daemon keeps the pods of its node as Services want them.
type Daemon struct {
	Settings
	Client client.Client
	Cache  cache.Cache // of Services, EndpointSlices, the node's pods, and kinds of the Gateway API

	wake    chan struct{}
	runners map[string]*runner
	tell    chan struct{}
	gates   chan struct{}
	mu      sync.Mutex // guards what follows
	ready   map[string]Pod
	failing map[string]failure // by UID
	// earlier is what the daemon before said of pods that this one has not looked at yet. Their
	// programs take packets on.
	earlier []v1alpha1.HostEndpoint
}

// failure is why a pod does not take packets as it should.
type failure struct {
	Pod
	why string
}

// KeepOwn is a transform of a cache: it drops what is of other nodes from EndpointSlices, which
// otherwise would fill each node's memory with those of all.
func KeepOwn(node string) toolscache.TransformFunc {
	return func(o any) (any, error) {
		s, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			return o, nil
		}
		s.ManagedFields = nil
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.NodeName == nil || *e.NodeName != node
		})
		s.Endpoints = slices.Clip(s.Endpoints)
		return s, nil
	}
}

// Run works until the context ends. Pods take packets on then, as their programs stay.
func (d *Daemon) Run(ctx context.Context) error {
	d.wake, d.tell, d.gates = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	d.ready, d.failing = map[string]Pod{}, map[string]failure{}
	if err := d.hello(ctx); err != nil {
		return err
	}
	var err error
	if d.runners, err = d.leftovers(d.wake); err != nil { // with the locator
		return err
	}
	kinds := []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}}
	if d.GatewayAPI {
		kinds = append(kinds, gatewayKinds...)
	}
	for _, o := range kinds {
		informer, err := d.Cache.GetInformer(ctx, o)
		if err != nil {
			return err
		}
		poke := func(any) { poke(d.wake) }
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: poke, DeleteFunc: poke,
			UpdateFunc: func(_, o any) { poke(o) },
		}); err != nil {
			return err
		}
	}
	if err := d.watchPods(ctx); err != nil {
		return err
	}
	if !d.Cache.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	var told sync.WaitGroup
	told.Go(func() { d.report(ctx) })
	told.Go(func() { d.openGates(ctx) })
	poke(d.wake)
	d.work(ctx)
	told.Wait()
	for _, r := range d.runners {
		r.stop()
	}
	return nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// settle is how long changes are gathered, for they come together.
const settle = 5 * time.Millisecond

func (d *Daemon) work(ctx context.Context) {
	wait := time.Second
	for {
		var again <-chan time.Time
		if d.sync(ctx) {
			again, wait = time.After(wait), min(2*wait, 10*time.Second)
		} else {
			wait = 200 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-d.wake:
			time.Sleep(settle)
		}
	}
}

// atOnce bounds how many agents start at the same time.
const atOnce = 4

// sync brings all pods to what is wanted, and reports whether some are to be tried again.
func (d *Daemon) sync(ctx context.Context) (again bool) {
	wanted, left, err := d.wanted(ctx)
	if err != nil {
		d.Log.Error("what is wanted can't be read", "error", err)
		return true
	}
	for _, why := range left {
		d.Log.Debug("an endpoint is left out", "why", why)
	}
	d.keepEarlier(func(e v1alpha1.HostEndpoint) bool {
		return slices.ContainsFunc(wanted, func(p Pod) bool { return p.has(e) })
	})
	seen := map[string]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, p := range wanted {
		seen[p.UID] = true
		if len(p.Serves) == 0 {
			continue // it serves none of its Services' ports
		}
		r := d.runners[p.UID]
		if r == nil {
			r = &runner{Settings: d.Settings, wake: d.wake, pod: p}
			d.runners[p.UID] = r
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := d.bring(ctx, r, p); err != nil {
				mu.Lock()
				again = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for uid, r := range d.runners {
		if seen[uid] || ctx.Err() != nil {
			continue
		}
		d.unready(uid)
		if err := r.end(); err != nil {
			d.Log.Warn("a pod is gone, and something is left of it; tried again soon", "pod",
				r.pod.Name, "error", err)
			again = true
			continue
		}
		d.Log.Info("pod takes no packets any more", "pod", r.pod.Name)
		delete(d.runners, uid)
	}
	return again
}

func (d *Daemon) bring(ctx context.Context, r *runner, p Pod) error {
	d.mu.Lock()
	before, there := d.ready[p.UID]
	d.mu.Unlock()
	if there && reflect.DeepEqual(before, p) && r.running() {
		return nil
	}
	err := r.bring(ctx, p)
	switch {
	case errors.Is(err, errNotFound):
		d.Log.Debug("pod has not started yet", "pod", p.Name)
		d.keepEarlier(func(e v1alpha1.HostEndpoint) bool { return !p.has(e) })
		poke(d.tell)
	case err != nil && ctx.Err() == nil:
		d.Log.Warn("pod does not take packets", "pod", p.Name, "error", err)
		d.mu.Lock()
		d.failing[p.UID] = failure{p, plan.Message(err.Error())}
		d.mu.Unlock()
		poke(d.tell)
	case err == nil:
		d.Log.Info("pod takes packets", "pod", p.Name, "addresses", p.Addresses)
		d.mu.Lock()
		d.ready[p.UID] = p
		delete(d.failing, p.UID)
		d.mu.Unlock()
		poke(d.tell)
		poke(d.gates)
	}
	return err
}

// keepEarlier keeps of what the daemon before said that for which ok holds.
func (d *Daemon) keepEarlier(ok func(v1alpha1.HostEndpoint) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.earlier = slices.DeleteFunc(d.earlier, func(e v1alpha1.HostEndpoint) bool { return !ok(e) })
}

func (d *Daemon) unready(uid string) {
	d.mu.Lock()
	delete(d.ready, uid)
	delete(d.failing, uid)
	d.mu.Unlock()
	poke(d.tell)
}

func (d *Daemon) wanted(ctx context.Context) ([]Pod, []string, error) {
	var services corev1.ServiceList
	if err := d.Cache.List(ctx, &services, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	var all discoveryv1.EndpointSliceList
	if err := d.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	of := map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	for i := range all.Items {
		s := &all.Items[i]
		if len(s.Endpoints) > 0 {
			key := types.NamespacedName{Namespace: s.Namespace,
				Name: s.Labels[discoveryv1.LabelServiceName]}
			of[key] = append(of[key], s)
		}
	}
	list := make([]*corev1.Service, len(services.Items))
	for i := range services.Items {
		list[i] = &services.Items[i]
	}
	uses := UsesOfServices(list, d.Class, d.Default)
	if d.GatewayAPI {
		targets, err := d.targets(ctx)
		if err != nil {
			return nil, nil, err
		}
		uses = append(uses, UsesOfTargets(targets)...)
	}
	pods, left := Wanted(d.Node, uses,
		func(n types.NamespacedName) []*discoveryv1.EndpointSlice { return of[n] })
	return pods, left, nil
}

// hello reads the node's locator, and makes its Host if there is none. What a Host of this boot
// says holds on until the pods have been looked at.
func (d *Daemon) hello(ctx context.Context) error {
	var n corev1.Node
	for {
		err := d.Client.Get(ctx, types.NamespacedName{Name: d.Node}, &n)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Node %s: %w", d.Node, err)
		}
		if text := n.Annotations[AnnotationLocator]; err == nil && text != "" {
			if d.Locator, err = netip.ParsePrefix(text); err != nil {
				return fmt.Errorf("annotation %s of Node %s: %w", AnnotationLocator, d.Node, err)
			}
			if err := CheckLocator(d.Locator, d.Template.Domain); err != nil {
				return fmt.Errorf("annotation %s of Node %s: %w", AnnotationLocator, d.Node, err)
			}
			break
		}
		d.Log.Warn("the Node has no locator: write the annotation "+AnnotationLocator+
			", like fd00:c0de:1::/64", "node", d.Node)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	host := v1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: d.Node,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name,
			UID: n.UID}}}}
	err := d.Client.Create(ctx, &host)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err = d.Client.Get(ctx, types.NamespacedName{Name: d.Node}, &host); err != nil {
		return err
	}
	if host.Status.Boot == bootID() && host.Status.Locator == d.Locator.String() {
		d.earlier = host.Status.Endpoints
	}
	return nil
}

// bootID names this boot of the node; "" if the kernel does not.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// report writes which pods take packets into the node's Host.
func (d *Daemon) report(ctx context.Context) {
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.tell:
			time.Sleep(settle)
		case <-retry:
		}
		retry = nil
		if err := d.write(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("the node's Host can't be written", "error", err)
			retry = time.After(time.Second)
		}
	}
}

func (d *Daemon) write(ctx context.Context) error {
	var host v1alpha1.Host
	if err := d.Client.Get(ctx, types.NamespacedName{Name: d.Node}, &host); err != nil {
		return err
	}
	status := v1alpha1.HostStatus{Locator: d.Locator.String(), Boot: bootID()}
	found := map[string]v1alpha1.HostEndpoint{}
	d.mu.Lock()
	for _, e := range d.earlier {
		found[e.Address] = e
	}
	for _, p := range d.ready {
		for _, a := range p.Addresses {
			found[a.String()] = v1alpha1.HostEndpoint{Address: a.String(),
				SID: SIDOf(d.Locator, a).String(), Serves: p.servesAt(a)}
		}
	}
	for _, p := range d.failing {
		for _, a := range p.Addresses {
			if serves := p.servesAt(a); len(serves) > 0 {
				status.Problems = append(status.Problems, v1alpha1.HostProblem{
					Address: a.String(), Services: serves, Why: p.why})
			}
		}
	}
	d.mu.Unlock()
	slices.SortFunc(status.Problems, func(a, b v1alpha1.HostProblem) int {
		return cmp.Compare(a.Address, b.Address)
	})
	status.Endpoints = slices.SortedFunc(maps.Values(found),
		func(a, b v1alpha1.HostEndpoint) int { return cmp.Compare(a.Address, b.Address) })
	if reflect.DeepEqual(status, host.Status) {
		return nil
	}
	before := host.DeepCopy()
	host.Status = status
	return d.Client.Status().Patch(ctx, &host, client.MergeFrom(before))
}

// Prepare makes the directory of the node's pods. In a container, which has sysctls that can't be
// written, it makes them writable there.
func (s Settings) Prepare() error {
	const sysctls = "/proc/sys"
	var f unix.Statfs_t
	if err := unix.Statfs(sysctls, &f); err != nil {
		return fmt.Errorf("look at %s: %w", sysctls, err)
	}
	if f.Flags&unix.ST_RDONLY != 0 {
		if err := unix.Mount("", sysctls, "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("make %s writable, for pods to pass packets on: %w; give the "+
				"container SYS_ADMIN and no AppArmor profile", sysctls, err)
		}
	}
	return os.MkdirAll(s.Dir, 0o700)
}
