package e2e_test

import (
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/v1alpha1"
	"sextant/linux/linuxtest"
)

// birdText is a router of the fabric that takes what edges announce.
const birdText = `
router id 203.0.113.254;
protocol device {}
protocol bgp edges {
	local fd00:5e::ff as 64512;
	neighbor range fd00:5e::/48 internal;
	dynamic name "edge";
	passive;
	ipv4 { import all; export none; extended next hop on; };
	ipv6 { import all; export none; };
}
`

// condition is that of a peering; "" if there is none yet.
func (w *world) condition(peering, kind string) (status, message string) {
	w.t.Helper()
	var p v1alpha1.BGPPeering
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: peering}, &p))
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != p.Generation {
		return "", ""
	}
	return string(c.Status), c.Message
}

// routes reports whether a router has a Service's addresses from a number of edges each.
func routes(answer string, w *world, service string, edges int) bool {
	for _, in := range w.ingress(service) {
		bits := "/32"
		if strings.Contains(in.IP, ":") {
			bits = "/128"
		}
		_, rest, _ := strings.Cut(answer, in.IP+bits)
		found := 0
		for line := range strings.Lines(rest) {
			if strings.HasPrefix(line, " ") && strings.Contains(line, "[edge") {
				found++
			} else if strings.Contains(line, "/") && !strings.HasPrefix(line, "\t") {
				break
			}
		}
		if found != edges {
			return false
		}
	}
	return true
}

// A BGPPeering has edges tell a router of Services; a wrong one is refused and harms no other, and
// what was declared goes with it, also while no controller runs.
func (w *world) testPeering() {
	ask := linuxtest.BIRD(w.t, w.netns("router"), birdText)
	told := func(edges int) func() bool {
		return func() bool { return routes(ask("show route"), w, "web", edges) }
	}
	peering := &v1alpha1.BGPPeering{ObjectMeta: objectMeta("fabric")}
	peering.Namespace = ""
	peering.Spec.Neighbors = []v1alpha1.BGPNeighbor{{Address: "fd00:5e::ff", ASN: 64512,
		HoldTimeSeconds: 9}}
	begun := time.Now()
	w.create(peering)
	w.eventually("the router knows the Service from both edges", 30*time.Second, told(2))
	w.t.Logf("the router knows the Service %v after the BGPPeering", time.Since(begun))
	w.eventually("the peering's status says so", 30*time.Second, func() bool {
		accepted, _ := w.condition("fabric", "Accepted")
		established, _ := w.condition("fabric", "Established")
		return accepted == "True" && established == "True"
	})
	_, r := w.status("web")
	for _, e := range r.Edges {
		if e.Sessions != 1 || e.Established != 1 {
			w.t.Errorf("status of %s: %d of %d sessions are established, want 1 of 1", e.Name,
				e.Established, e.Sessions)
		}
	}

	wrong := &v1alpha1.BGPPeering{ObjectMeta: objectMeta("wrong")}
	wrong.Namespace = ""
	wrong.Spec.Edges = []string{"edge1", "nowhere"}
	wrong.Spec.Neighbors = []v1alpha1.BGPNeighbor{{Address: "fd00:5e::ff", ASN: 64999}}
	w.create(wrong)
	w.eventually("a neighbor that another peering has is refused", 30*time.Second, func() bool {
		status, message := w.condition("wrong", "Accepted")
		return status == "False" && strings.Contains(message, "edge1: neighbor fd00:5e::ff is "+
			"given twice") && strings.Contains(message, "there is no Edge nowhere")
	})
	wrong.Spec.Neighbors[0].Address = "fd00:5e::xyz"
	w.editPeering("wrong", func(p *v1alpha1.BGPPeering) { p.Spec = wrong.Spec })
	w.eventually("what is no address is refused", 30*time.Second, func() bool {
		status, message := w.condition("wrong", "Accepted")
		return status == "False" && strings.Contains(message, `"fd00:5e::xyz" is no address`)
	})
	must(w.t, w.client.Delete(w.t.Context(), wrong))
	if !told(2)() {
		w.t.Errorf("a wrong peering ended another's sessions: %s", ask("show route"))
	}

	w.editPeering("fabric", func(p *v1alpha1.BGPPeering) { p.Spec.Edges = []string{"edge2"} })
	w.eventually("the router knows the Service from one edge", 30*time.Second, told(1))
	w.controller.stop(syscall.SIGTERM)
	must(w.t, w.client.Delete(w.t.Context(), peering))
	w.startController()
	w.eventually("the router knows no Service", 30*time.Second, told(0))
}

func (w *world) editPeering(name string, edit func(*v1alpha1.BGPPeering)) {
	w.t.Helper()
	var p v1alpha1.BGPPeering
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &p))
	before := p.DeepCopy()
	edit(&p)
	must(w.t, w.client.Patch(w.t.Context(), &p, client.MergeFrom(before)))
}
