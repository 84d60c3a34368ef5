package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"

	"sextant/controller/kubernetes/v1alpha1"
)

// newScheme knows the kinds that are used here.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme,
		coordinationv1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme, gatewayv1.Install} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// clusterOf reads how the API server is reached: from a file, or as a pod does.
func clusterOf(kubeconfig string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
}

func cluster(kubeconfig string) (*rest.Config, error) {
	c, err := clusterOf(kubeconfig).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w; name a file with "+
			"--kubeconfig", err)
	}
	c.QPS = -1 // the server has priorities and fairness
	c.UserAgent = "sextant-kubernetes/" + version
	return c, nil
}

// hasGatewayAPI asks whether a cluster has all kinds of the Gateway API that are served.
func hasGatewayAPI(config *rest.Config) (bool, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, err
	}
	list, err := c.ServerResourcesForGroupVersion(gatewayv1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("ask the API server for the kinds of the Gateway API: %w", err)
	}
	missing := map[string]bool{"GatewayClass": true, "Gateway": true, "TCPRoute": true,
		"UDPRoute": true, "ReferenceGrant": true}
	for _, r := range list.APIResources {
		delete(missing, r.Kind)
	}
	return len(missing) == 0, nil
}

// logTo makes a logger on stderr, and gives it to the libraries.
func logTo(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	handler := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler)
}
