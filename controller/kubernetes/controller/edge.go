package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sextant/agent/api"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// edgeReconciler makes a keeper of each Edge, and writes what it reports into its status.
type edgeReconciler struct {
	*state
	enqueue func(types.NamespacedName)

	mu      sync.Mutex
	keys    map[string]edgeKey // what keepers were made of
	reports map[string]edges.Report
}

// edgeKey is all that a keeper is made of.
type edgeKey struct {
	v1alpha1.EdgeSpec
	secret, uid, fault string
}

// reportEvery bounds how often an edge's status is written.
const reportEvery = 2 * time.Second

// Reconcile is what reconcile.Reconciler says.
func (r *edgeReconciler) Reconcile(ctx context.Context,
	q reconcile.Request) (reconcile.Result, error) {
	var e v1alpha1.Edge
	if err := r.Get(ctx, q.NamespacedName, &e); apierrors.IsNotFound(err) {
		r.board.Set(q.Name, nil, "", nil)
		measure(q.Name, nil)
		r.mu.Lock()
		delete(r.keys, q.Name)
		delete(r.reports, q.Name)
		r.mu.Unlock()
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	key, agent, err := r.agentOf(ctx, &e)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.mu.Lock()
	same := r.keys[e.Name] == key
	r.keys[e.Name] = key
	if !same {
		delete(r.reports, e.Name)
	}
	r.mu.Unlock()
	if !same {
		r.board.Set(e.Name, agent, e.Spec.Zone, func(report edges.Report) {
			r.mu.Lock()
			before, ok := r.reports[e.Name]
			r.reports[e.Name] = report
			r.mu.Unlock()
			measure(e.Name, &report)
			if !ok || before != report {
				r.enqueue(q.NamespacedName)
			}
		})
	}
	if err := r.write(ctx, &e, key.fault); err != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, nil
}

// agentOf is remote as edges.Agent.
func (r *edgeReconciler) agentOf(ctx context.Context, e *v1alpha1.Edge) (edgeKey, edges.Agent,
	error) {
	key, agent, err := r.remote(ctx, e)
	if agent == nil {
		return key, nil, err
	}
	return key, remoteAgent{agent}, err
}

// remote makes the client of an edge's agent; the fault in the key is why it can't.
func (s *state) remote(ctx context.Context, e *v1alpha1.Edge) (edgeKey, *api.Client, error) {
	key := edgeKey{EdgeSpec: e.Spec, uid: string(e.UID)}
	var secret corev1.Secret
	name := types.NamespacedName{Namespace: s.Namespace, Name: e.Spec.SecretName}
	if err := s.Get(ctx, name, &secret); apierrors.IsNotFound(err) {
		key.fault = fmt.Sprintf("there is no Secret %s: make one with a token of the agent", name)
		return key, nil, nil
	} else if err != nil {
		return key, nil, err
	}
	key.secret = secret.ResourceVersion
	if len(secret.Data["token"]) == 0 {
		key.fault = fmt.Sprintf("Secret %s has no \"token\"", name)
		return key, nil, nil
	}
	remote, err := api.NewRemoteClient("agent", api.Remote{Address: e.Spec.Address,
		Token: string(secret.Data["token"]), CA: secret.Data["ca.crt"],
		Certificate: secret.Data["tls.crt"], Key: secret.Data["tls.key"]})
	if err != nil {
		key.fault = fmt.Sprintf("Secret %s: %v", name, err)
		return key, nil, nil
	}
	return key, remote.BreakingConnections(), nil
}

// remoteAgent asks an agent elsewhere. What Kubernetes says of its objects is the word by which
// connections of pods that are gone may end.
type remoteAgent struct{ *api.Client }

const edgeServices = "/v1/edge/services"

func (a remoteAgent) Declared(ctx context.Context) (api.DeclaredList, error) {
	return api.Ask[api.DeclaredList](ctx, a.Client, "GET", edgeServices, nil, nil)
}

func (a remoteAgent) Declare(ctx context.Context, d api.Declaration) (api.DeclarationMade, error) {
	return api.Ask[api.DeclarationMade](ctx, a.Client, "PATCH", edgeServices, nil, d)
}

// write brings the status of an edge up to date.
func (r *edgeReconciler) write(ctx context.Context, e *v1alpha1.Edge, fault string) error {
	r.mu.Lock()
	report, heard := r.reports[e.Name]
	r.mu.Unlock()
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Current",
		Message: "the edge has all services as they are wanted", ObservedGeneration: e.Generation}
	switch {
	case fault != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Invalid", plan.Message(fault)
	case !heard:
		return nil
	case report.Trouble != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Trouble",
			plan.Message(report.Trouble)
	case report.Waiting > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Waiting"
		c.Message = "services wait to be told"
	}
	before := e.DeepCopy()
	changed := meta.SetStatusCondition(&e.Status.Conditions, c)
	if e.Status.Services == int32(report.Services) && !changed {
		return nil
	}
	e.Status.Services = int32(report.Services)
	return r.Status().Patch(ctx, e, client.MergeFrom(before))
}
