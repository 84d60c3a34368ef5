package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/v1alpha1"
)

// Gate is the condition that pods may name in spec.readinessGates: they are ready, so that a
// rolling update goes on, when they take packets of all that they serve.
const Gate corev1.PodConditionType = v1alpha1.Group + "/takes-packets"

// OwnPods has a cache keep the pods of a node alone, and of these what gates look at.
func OwnPods(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", node),
		Transform: keepGate}
}

func keepGate(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	kept := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace,
		Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}
	if gated(p) {
		kept.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: Gate}}
		if c := gateOf(p); c != nil {
			kept.Status.Conditions = []corev1.PodCondition{*c}
		}
	}
	return kept, nil
}

func gated(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == Gate
	})
}

func gateOf(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == Gate {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Open is the condition of a pod's gate; nil: it stays as it is. A gate that was opened stays open:
// a pod is not less ready because a Service does not name it any more.
func Open(p *corev1.Pod, takes bool) *corev1.PodCondition {
	c := corev1.PodCondition{Type: Gate, Status: corev1.ConditionTrue, Reason: "TakesPackets",
		Message: "the pod takes packets of all that it serves"}
	if !takes {
		c.Status, c.Reason = corev1.ConditionFalse, "Waiting"
		c.Message = "no Service or Gateway that edges serve names the pod, or it does not take " +
			"packets yet: the log of sextant-kubernetes node says why"
	}
	before := gateOf(p)
	if !gated(p) || before != nil &&
		(before.Status == corev1.ConditionTrue || before.Status == c.Status) {
		return nil
	}
	return &c
}

// watchPods has gates be looked at as pods come and change.
func (d *Daemon) watchPods(ctx context.Context) error {
	informer, err := d.Cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch the pods of the node: %w", err)
	}
	look := func(any) { poke(d.gates) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: look,
		UpdateFunc: func(_, o any) { look(o) }})
	return err
}

// openGates writes the conditions of pods until the context ends.
func (d *Daemon) openGates(ctx context.Context) {
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.gates:
		case <-retry:
		}
		retry = nil
		if err := d.writeGates(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("a pod's readiness gate can't be written", "error", err)
			retry = time.After(time.Second)
		}
	}
}

func (d *Daemon) writeGates(ctx context.Context) error {
	var pods corev1.PodList
	if err := d.Cache.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		d.mu.Lock()
		_, takes := d.ready[string(p.UID)]
		d.mu.Unlock()
		c := Open(p, takes)
		if c == nil {
			continue
		}
		c.LastTransitionTime = metav1.Now()
		next := p.DeepCopy()
		next.Status.Conditions = []corev1.PodCondition{*c}
		err := d.Client.Status().Patch(ctx, next, client.StrategicMergeFrom(p))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}
