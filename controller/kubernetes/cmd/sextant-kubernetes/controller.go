package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sextant/controller/kubernetes/controller"
	"sextant/controller/kubernetes/plan"
)

func controllerCommand() *cobra.Command {
	var c controller.Config
	var kubeconfig, metrics, health string
	var elect, verbose bool
	cmd := &cobra.Command{Use: "controller", Args: cobra.NoArgs,
		Short: "Give Services and Gateways addresses, and tell edges who serves them",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Namespace == "" {
				return errors.New("name the namespace of the Secrets with --namespace")
			}
			log := logTo(verbose)
			m, err := newManager(kubeconfig, metrics, health, elect, c.Namespace)
			if err != nil {
				return err
			}
			if c.GatewayAPI, err = hasGatewayAPI(m.GetConfig()); err != nil {
				return err
			}
			if !c.GatewayAPI {
				log.Info("the cluster has no Gateway API with TCPRoutes and UDPRoutes: Services " +
					"alone are served until this program is started again")
			}
			if err := controller.Add(m, c); err != nil {
				return err
			}
			return m.Start(cmd.Context())
		}}
	flags := cmd.Flags()
	flags.StringVar(&c.Class, "class", plan.Class, "loadBalancerClass of the Services to serve")
	flags.BoolVar(&c.DefaultClass, "default-class", false, "serve Services without a class, too")
	flags.StringVar(&c.Prefix, "prefix", "k8s",
		"begins the names of this cluster's services at edges; each cluster has its own")
	flags.StringVar(&c.Namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"where the Secrets of edges are")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file that says how the API server is reached")
	flags.StringVar(&metrics, "metrics", ":8080", "where Prometheus asks; 0: nowhere")
	flags.StringVar(&health, "health", ":8081", "where probes ask; 0: nowhere")
	flags.BoolVar(&elect, "leader-elect", true, "work only as the leader of several replicas")
	flags.BoolVarP(&verbose, "verbose", "v", false, "log more")
	return cmd
}

func newManager(kubeconfig, metrics, health string, elect bool, namespace string) (ctrl.Manager,
	error) {
	config, err := cluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme,
		LeaderElection: elect, LeaderElectionID: "sextant-kubernetes",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: metrics},
		HealthProbeBindAddress:        health,
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {}}},
			}}})
	if err != nil {
		return nil, err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, m.AddReadyzCheck("ping", healthz.Ping)
}
