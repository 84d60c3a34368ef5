package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// After another controller an owner that is served is told what is new alone, and each trouble.
func TestNews(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	s := &state{events: recorder, said: map[string]string{}}
	on := &corev1.Service{}
	for _, c := range []struct {
		owner, text string
		served      bool
		told        int
	}{{"old", "served by edge1", true, 0}, {"old", "served by edge1", true, 0},
		{"old", "served by edge1, edge2", true, 1}, {"young", "served by edge1", false, 1},
		{"young", "served by edge1", true, 0}, {"trouble", "edge1 does not answer", true, 1},
		{"trouble", "served by edge1", true, 1}} {
		if c.owner == "trouble" && c.text != "served by edge1" {
			s.say(c.owner, "edges", on, corev1.EventTypeWarning, "EdgeRefuses", c.text)
		} else {
			s.sayNews(c.owner, "edges", on, c.served, "Announced", c.text)
		}
		told := 0
		for len(recorder.Events) > 0 {
			<-recorder.Events
			told++
		}
		if told != c.told {
			t.Errorf("%s, %q, served %v: told %d times, want %d", c.owner, c.text, c.served, told,
				c.told)
		}
	}
}
