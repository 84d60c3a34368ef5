package node

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sextant/config"
	"sextant/controller/kubernetes/v1alpha1"
)

// A Host says what pods take, and of those that fail, for each of their addresses, what they do not
// and why.
func TestHostStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host := &v1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	served := func(vip string) Served {
		return Served{Endpoint: config.Endpoint{VIP: netip.MustParseAddr(vip), Port: 80,
			Protocol: config.TCP}}
	}
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	good := Pod{UID: "a", Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::2")},
		Serves: []Served{served("2001:db8:80::1")}}
	bad := Pod{UID: "b", Addresses: []netip.Addr{six, four}, Serves: []Served{served("192.0.2.1"),
		served("192.0.2.2")}}
	d := &Daemon{Settings: Settings{Node: "n", Locator: netip.MustParsePrefix("fd00:c0de::/64")},
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(host).
			WithStatusSubresource(host).Build(),
		tell:    make(chan struct{}, 1),
		ready:   map[string]Pod{"a": good},
		failing: map[string]failure{"b": {bad, "no room"}}}
	read := func() (s v1alpha1.HostStatus) {
		t.Helper()
		if err := d.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		var h v1alpha1.Host
		if err := d.Client.Get(t.Context(), types.NamespacedName{Name: "n"}, &h); err != nil {
			t.Fatal(err)
		}
		return h.Status
	}
	s := read()
	if len(s.Endpoints) != 1 || s.Endpoints[0].Address != "2001:db8::2" {
		t.Errorf("endpoints: %+v", s.Endpoints)
	}
	want := []v1alpha1.HostProblem{{Address: "10.0.0.1", Why: "no room",
		Services: []string{"192.0.2.1:80/tcp", "192.0.2.2:80/tcp"}}}
	if diff := cmp.Diff(want, s.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	d.unready("b")
	if s := read(); len(s.Problems) > 0 {
		t.Errorf("problems of a pod that is gone: %+v", s.Problems)
	}
}
