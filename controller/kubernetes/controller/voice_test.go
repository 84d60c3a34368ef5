package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// testVoice is a voice whose events are kept here; again gets owners that are to be looked at.
func testVoice(t *testing.T, again func(string)) *voice {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return newVoice(scheme, nil, again)
}

func someService() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web",
		UID: "u1", ResourceVersion: "7"}}
}

// After another controller an owner that is served is told what is new alone, and each trouble.
func TestNews(t *testing.T) {
	v, on := testVoice(t, nil), someService()
	for _, c := range []struct {
		owner, text string
		served      bool
		told        int
	}{{"old", "served by edge1", true, 0}, {"old", "served by edge1", true, 0},
		{"old", "served by edge1, edge2", true, 1}, {"young", "served by edge1", false, 1},
		{"young", "served by edge1", true, 0}, {"trouble", "edge1 does not answer", true, 1},
		{"trouble", "served by edge1", true, 1}} {
		v.meet(c.owner, c.served)
		if c.owner == "trouble" && c.text != "served by edge1" {
			v.say(c.owner, "edges", on, corev1.EventTypeWarning, "EdgeRefuses", c.text)
		} else {
			v.sayNews(c.owner, "edges", on, "Announced", c.text)
		}
		told := 0
		for len(v.queue) > 0 {
			if e := <-v.queue; e.Note != c.text || e.Regarding.Kind != "Service" ||
				e.Regarding.UID != "u1" || e.Namespace != "default" {
				t.Errorf("told %q of %+v", e.Note, e.Regarding)
			}
			told++
		}
		if told != c.told {
			t.Errorf("%s, %q, served %v: told %d times, want %d", c.owner, c.text, c.served, told,
				c.told)
		}
	}
}

// What goes up and down is told 25 times, then once a minute, by looks at the owner; another owner
// is told meanwhile.
func TestVoiceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks []string
		v := testVoice(t, func(owner string) { looks = append(looks, owner) })
		for i := range 1000 {
			v.say("flaps", "edges", someService(), corev1.EventTypeWarning, "EdgeRefuses",
				fmt.Sprint(i%2))
		}
		v.say("other", "edges", someService(), corev1.EventTypeWarning, "EdgeRefuses", "no")
		if len(v.queue) != eventsAtOnce+1 {
			t.Errorf("%d events of 1,001, want %d", len(v.queue), eventsAtOnce+1)
		}
		time.Sleep(eventEvery + time.Second)
		synctest.Wait()
		if fmt.Sprint(looks) != "[flaps]" {
			t.Errorf("looked at %v, want flaps once", looks)
		}
		v.say("flaps", "edges", someService(), corev1.EventTypeWarning, "EdgeRefuses", "the last")
		if len(v.queue) != eventsAtOnce+2 {
			t.Error("the last word is not told after a minute")
		}
	})
}

// While the API server does not answer, events are tried again; those that it refuses are not.
func TestVoiceTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, tries, mu := testVoice(t, nil), map[string]int{}, sync.Mutex{}
		v.create = func(_ context.Context, e *eventsv1.Event) error {
			mu.Lock()
			defer mu.Unlock()
			tries[e.Note]++
			switch {
			case e.Note == "forbidden":
				return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
			case tries[e.Note] < 3:
				return errors.New("connection refused")
			}
			return nil
		}
		for _, text := range []string{"one", "forbidden", "two"} {
			v.say(text, "edges", someService(), corev1.EventTypeWarning, "EdgeRefuses", text)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- v.run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if tries["one"] != 3 || tries["two"] != 3 || tries["forbidden"] != 1 {
			t.Errorf("tries: %v", tries)
		}
	})
}
