//go:build conformance

package e2e_test

import (
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"

	"sextant/controller/kubernetes/plan"
	"sextant/linux"
)

// insideClient is the variable by which the conformance tests run: at the client of the network.
const insideClient = "SEXTANT_E2E_CONFORMANCE"

// needHTTP are conformance tests of every Gateway that want listeners of HTTP or HTTPS, which an
// edge of packets does not have: what else they ask for, plan.TestGateway does.
var needHTTP = []string{"GatewayListenerUnsupportedProtocol", "GatewayInvalidRouteKind",
	"GatewayInvalidTLSConfiguration", "GatewayModifyListeners", "GatewayObservedGenerationBump",
	"GatewaySecretInvalidReferenceGrant", "GatewaySecretMissingReferenceGrant",
	"GatewaySecretReferenceGrantAllInNamespace", "GatewaySecretReferenceGrantSpecific",
	"TCPRouteInvalidNonTCPListener"}

// The conformance tests of the Gateway API, profiles GATEWAY-TCP and GATEWAY-UDP.
func TestConformance(t *testing.T) {
	if os.Getenv(insideClient) != "" {
		runConformance(t)
		return
	}
	w := newWorld(t)
	w.startController()
	w.startNode(1)
	w.startNode(2)
	w.create(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "sextant"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: plan.GatewayController}})
	w.eventually("the class is accepted", 60*time.Second, func() bool {
		var c gatewayv1.GatewayClass
		must(t, w.client.Get(t.Context(), types.NamespacedName{Name: "sextant"}, &c))
		return len(c.Status.SupportedFeatures) > 0 // which the tests read at their start
	})
	cmd := exec.Command(os.Args[0], "-test.run=^TestConformance$", "-test.v",
		"-test.timeout=30m")
	cmd.Env = append(os.Environ(), insideClient+"=1", "KUBECONFIG="+
		w.cluster.Kubeconfig("conformance", "[fd00:5e::9]:6443", "admin"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, linux.Start(cmd, w.netns("client"), nil))
	ended := make(chan struct{})
	var failed error
	go func() {
		failed = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unless it has ended
		<-ended
	})
	(&kubelet{w: w}).run(ended)
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "--- ") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	if failed != nil {
		t.Errorf("%v:\n%s", failed, out.String())
	}
}

func runConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.GatewayClassName = "sextant"
	options.ConformanceProfiles = []suite.ConformanceProfileName{
		suite.GatewayTCPConformanceProfileName, suite.GatewayUDPConformanceProfileName}
	options.SkipTests = needHTTP
	options.CleanupBaseResources = true
	options.CleanupTestResources = true
	options.BaseManifests = "base.yaml"
	options.ManifestFS = []fs.FS{withoutGateways(t), &conformance.Manifests}
	conformance.RunConformanceWithOptions(t, options)
}

// withoutGateways are the objects that all conformance tests have in common, but for Gateways, all
// of HTTP.
func withoutGateways(t *testing.T) fs.FS {
	text, err := fs.ReadFile(conformance.Manifests, "base/manifests.yaml")
	must(t, err)
	var kept []string
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(part, "\nkind: Gateway\n") {
			kept = append(kept, part)
		}
	}
	return fstest.MapFS{"base.yaml": {Data: []byte(strings.Join(kept, "\n---\n"))}}
}
