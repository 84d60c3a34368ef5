package controller

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/plan"
)

const (
	eventWriters = 2     // fewer than workers: what is served goes before what is said of it
	eventsWait   = 16384 // that are not written yet, at most
	eventTries   = 12
	eventPause   = 5 * time.Second
	// An owner is told so much at once, and then one thing in a time: what goes up and down does
	// not fill etcd.
	eventsAtOnce = 25
	eventEvery   = time.Minute
)

// A voice tells owners what was decided, by events. Client-go's recorders do not do: they keep of
// all texts with one reason the first for minutes, drop what comes more than a thousand at once,
// and write JSON, which costs the API server half as much again as Protocol Buffers.
type voice struct {
	scheme   *runtime.Scheme
	instance string
	create   func(context.Context, *eventsv1.Event) error
	again    func(owner string) // has an owner be looked at
	queue    chan *eventsv1.Event

	mu   sync.Mutex
	told map[string]*told // by owner
}

// told is what an owner was told.
type told struct {
	latest  map[string]string // by subject
	met     bool
	served  bool // when it was met
	limit   flowcontrol.PassiveRateLimiter
	delayed bool
}

func newVoice(scheme *runtime.Scheme, c client.Client, again func(owner string)) *voice {
	host, _ := os.Hostname() // may be empty
	return &voice{scheme: scheme, instance: recorder + "-" + host, again: again,
		create: func(ctx context.Context, e *eventsv1.Event) error { return c.Create(ctx, e) },
		queue:  make(chan *eventsv1.Event, eventsWait), told: map[string]*told{}}
}

// say tells an owner something, unless that is what it was told last of the subject. No text: the
// subject is done with.
func (v *voice) say(owner, subject string, on client.Object, kind, reason, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sayLocked(owner, subject, on, kind, reason, text)
}

// meet notes of an owner, the first time, whether it is served already: by a controller that was
// here before.
func (v *voice) meet(owner string, served bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if of := v.of(owner); !of.met {
		of.met, of.served = true, served
	}
}

// sayNews tells an owner what goes well, unless that is not news: to an owner that was served when
// it was met, the first word on the subject is not.
func (v *voice) sayNews(owner, subject string, on client.Object, reason, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.of(owner)
	if _, told := of.latest[subject]; !told && of.served {
		of.latest[subject] = reason + text
	}
	v.sayLocked(owner, subject, on, corev1.EventTypeNormal, reason, text)
}

func (v *voice) sayLocked(owner, subject string, on client.Object, kind, reason, text string) {
	if text == "" {
		if of, ok := v.told[owner]; ok {
			delete(of.latest, subject)
		}
		return
	}
	of := v.of(owner)
	if of.latest[subject] == reason+text {
		return
	}
	if !of.limit.TryAccept() {
		v.later(owner, of)
		return
	}
	select {
	case v.queue <- v.event(on, kind, reason, plan.Message(text)):
		of.latest[subject] = reason + text
	default:
		v.later(owner, of)
	}
}

// later has an owner be looked at again when it may be told more.
func (v *voice) later(owner string, of *told) {
	if of.delayed {
		return
	}
	of.delayed = true
	time.AfterFunc(eventEvery, func() {
		v.mu.Lock()
		of.delayed = false
		v.mu.Unlock()
		v.again(owner)
	})
}

func (v *voice) of(owner string) *told {
	of, ok := v.told[owner]
	if !ok {
		of = &told{latest: map[string]string{}, limit: flowcontrol.NewTokenBucketPassiveRateLimiter(
			float32(1/eventEvery.Seconds()), eventsAtOnce)}
		v.told[owner] = of
	}
	return of
}

// hush forgets an owner that is gone.
func (v *voice) hush(owner string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.told, owner)
}

func (v *voice) event(on client.Object, kind, reason, text string) *eventsv1.Event {
	now := time.Now()
	e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: on.GetNamespace(),
		Name: util.GenerateEventName(on.GetName(), now.UnixNano())},
		EventTime: metav1.NewMicroTime(now), ReportingController: recorder,
		ReportingInstance: v.instance, Action: "Reconcile", Type: kind, Reason: reason, Note: text}
	about, err := reference.GetReference(v.scheme, on)
	if err != nil {
		panic(fmt.Sprintf("%T is not in the scheme: %v", on, err))
	}
	e.Regarding = *about
	return e
}

// run writes events until ctx ends.
func (v *voice) run(ctx context.Context) error {
	var work sync.WaitGroup
	for range eventWriters {
		work.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-v.queue:
					v.write(ctx, e)
				}
			}
		})
	}
	work.Wait()
	return nil
}

// write creates an event, and tries again while the API server does not answer.
func (v *voice) write(ctx context.Context, e *eventsv1.Event) {
	for try := 1; ; try++ {
		err := v.create(ctx, e)
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == eventTries || !passes(err) {
			ctrl.LoggerFrom(ctx).Error(err, "an event was not written", "about", e.Regarding.Name,
				"reason", e.Reason, "note", e.Note)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(eventPause):
		}
	}
}

// passes reports whether an error of the API server may pass: the others are its decisions.
func passes(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown ||
		apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err)
}
