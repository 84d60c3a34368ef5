package node_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sextant/controller/kubernetes/node"
)

// Only pods that name the gate get its condition, and it stays open once it is.
func TestOpen(t *testing.T) {
	const none, no, yes = corev1.ConditionStatus(""), corev1.ConditionFalse, corev1.ConditionTrue
	for _, c := range []struct {
		gate   bool
		before corev1.ConditionStatus
		takes  bool
		want   corev1.ConditionStatus // none: nothing is written
	}{
		{false, none, true, none}, {false, none, false, none},
		{true, none, false, no}, {true, none, true, yes},
		{true, no, false, none}, {true, no, true, yes},
		{true, yes, true, none}, {true, yes, false, none},
	} {
		p := &corev1.Pod{}
		if c.gate {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.net/other"},
				{ConditionType: node.Gate}}
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: no}}
		if c.before != none {
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: node.Gate, Status: c.before})
		}
		got := none
		if open := node.Open(p, c.takes); open != nil {
			got = open.Status
		}
		if got != c.want {
			t.Errorf("gate %t, %q before, takes %t: %q, want %q", c.gate, c.before, c.takes, got,
				c.want)
		}
	}
}
