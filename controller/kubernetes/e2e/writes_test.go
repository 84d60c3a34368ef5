package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/v1alpha1"
	"sextant/linux/linuxtest"
)

const writesOfEach = 1000

// What the API server takes, in processor time, to write a Service's finalizer and status in
// different ways, and an event. Each way has Services of its own.
func BenchmarkWrites(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root to make network namespaces: run with sudo")
	}
	kubePrograms(b, "kube-apiserver", "etcd")
	ns, _ := linuxtest.Netns(b)
	must(b, ns.Do(func() error { return linuxtest.IP("link set lo up") }))
	w := &world{t: b, scheme: runtime.NewScheme()}
	w.cluster = startCluster(b, ns, nil)
	must(b, clientgoscheme.AddToScheme(w.scheme))
	var err error
	w.client, err = client.NewWithWatch(w.cluster.Config, client.Options{Scheme: w.scheme})
	must(b, err)
	asJSON, err := kubernetes.NewForConfig(w.cluster.Config)
	must(b, err)
	both := func(i int) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Finalizers = []string{v1alpha1.Group + "/load-balancer"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addressOf(i)}}
		}
	}
	for _, way := range []struct {
		name  string
		write func(ctx context.Context, i int, s *corev1.Service) error
	}{
		{"finalizer-merge-patch", func(ctx context.Context, i int, s *corev1.Service) error {
			before := s.DeepCopy()
			s.Finalizers = []string{v1alpha1.Group + "/load-balancer"}
			return w.client.Patch(ctx, s, client.MergeFrom(before))
		}},
		{"status-merge-patch", func(ctx context.Context, i int, s *corev1.Service) error {
			before := s.DeepCopy()
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addressOf(i)}}
			return w.client.Status().Patch(ctx, s, client.MergeFrom(before))
		}},
		{"both-merge-patch", func(ctx context.Context, i int, s *corev1.Service) error {
			before := s.DeepCopy()
			both(i)(s)
			return w.client.Status().Patch(ctx, s, client.MergeFrom(before))
		}},
		{"both-strategic-merge-patch", func(ctx context.Context, i int, s *corev1.Service) error {
			before := s.DeepCopy()
			both(i)(s)
			return w.client.Status().Patch(ctx, s, client.StrategicMergeFrom(before))
		}},
		{"both-apply", func(ctx context.Context, i int, s *corev1.Service) error {
			text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service",
				"metadata": {"finalizers": ["sextant.dev/load-balancer"]},
				"status": {"loadBalancer": {"ingress": [{"ip": %q}]}}}`, addressOf(i))
			return w.client.Status().Patch(ctx, s, client.RawPatch(types.ApplyPatchType,
				[]byte(text)), client.FieldOwner("bench"))
		}},
		{"both-update", func(ctx context.Context, i int, s *corev1.Service) error {
			both(i)(s)
			return w.client.Status().Update(ctx, s)
		}},
		{"event-json", func(ctx context.Context, i int, s *corev1.Service) error {
			_, err := asJSON.EventsV1().Events("default").Create(ctx, eventOf(s),
				metav1.CreateOptions{})
			return err
		}},
		{"event", func(ctx context.Context, i int, s *corev1.Service) error {
			return w.client.Create(ctx, eventOf(s))
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			list := make([]*corev1.Service, writesOfEach)
			w.parallel(writesOfEach, func(ctx context.Context, i int) error {
				list[i] = scaledService(fmt.Sprintf("%s-%d", way.name, i), i)
				err := w.client.Create(ctx, list[i])
				list[i].ManagedFields = nil // as in the controller's cache
				return err
			})
			used := processorTime(b, w.cluster.Server)
			w.parallel(writesOfEach, func(ctx context.Context, i int) error {
				return way.write(ctx, i, list[i])
			})
			b.ReportMetric((processorTime(b, w.cluster.Server)-used)*1000/writesOfEach,
				"ms-apiserver")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// addressOf is a virtual address of the Service of a number.
func addressOf(i int) string { return fmt.Sprintf("2001:db8:80::%x", i+1) }

func eventOf(s *corev1.Service) *eventsv1.Event {
	return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		EventTime: metav1.NowMicro(), ReportingController: "sextant-kubernetes",
		ReportingInstance: "sextant-kubernetes-bench", Action: "Reconcile", Reason: "Announced",
		Type: corev1.EventTypeNormal, Note: "2001:db8:80::80 served by edge1, edge2",
		Regarding: corev1.ObjectReference{Kind: "Service", APIVersion: "v1",
			Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}}
}
