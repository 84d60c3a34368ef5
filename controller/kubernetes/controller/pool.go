package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// poolReconciler reads pools anew when one changes, and writes what is left into their status.
type poolReconciler struct {
	*state
	all func() // has all who claim addresses be looked at
}

// Reconcile is what reconcile.Reconciler says.
func (r poolReconciler) Reconcile(ctx context.Context,
	q reconcile.Request) (reconcile.Result, error) {
	if err := r.begin(ctx); err != nil {
		return reconcile.Result{}, err
	}
	var v v1alpha1.VIPPool
	err := r.Get(ctx, q.NamespacedName, &v)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	gone := err != nil
	r.mu.Lock()
	before := r.pools
	err = r.readPools(ctx)
	changed := !samePools(before, r.pools)
	r.mu.Unlock()
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		r.all()
	}
	if gone {
		return reconcile.Result{}, nil
	}
	err = r.write(ctx, &v)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: poolStatusEvery}, nil
}

func (r poolReconciler) write(ctx context.Context, v *v1alpha1.VIPPool) error {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Valid",
		Message: "addresses can be assigned", ObservedGeneration: v.Generation}
	next := v.DeepCopy()
	p, err := poolOf(v)
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Invalid",
			plan.Message(err.Error())
		next.Status.Assigned, next.Status.Free = 0, 0
	default:
		r.mu.Lock()
		other := p.Overlap(r.pools)
		next.Status.Assigned = r.book.Assigned(v.Name)
		r.mu.Unlock()
		next.Status.Free = p.Size() - next.Status.Assigned
		if other != "" && !r.has(v.Name) {
			c.Status, c.Reason = metav1.ConditionFalse, "Overlap"
			c.Message = "it has addresses that pool " + other + " has: each belongs to one pool; " +
				"this one is not used"
			next.Status.Assigned, next.Status.Free = 0, 0
		}
	}
	changed := meta.SetStatusCondition(&next.Status.Conditions, c)
	if !changed && next.Status.Assigned == v.Status.Assigned && next.Status.Free == v.Status.Free {
		return nil
	}
	return r.Status().Patch(ctx, next, client.MergeFrom(v))
}

// has reports whether a pool is used.
func (r poolReconciler) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pools {
		if p.Name == name {
			return true
		}
	}
	return false
}
