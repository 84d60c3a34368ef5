package e2e_test

import (
	"os"
	"syscall"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"sextant/linux/linuxtest"
)

// A rollout replaces the pods of a Deployment: what kubelets and the controllers of Kubernetes do,
// with as many pods beyond what is wanted as batches have.
type rollout struct {
	w       *world
	service string
	pods    []*pod // that are wanted
	leaving []*pod
}

// write writes the EndpointSlices as they are now.
func (r *rollout) write() {
	r.w.slices(r.service, 8080, func(v6 bool) (list []discoveryv1.Endpoint) {
		for _, p := range r.pods {
			list = append(list, p.endpoint(v6, true, true, false))
		}
		for _, p := range r.leaving {
			list = append(list, p.endpoint(v6, false, true, true))
		}
		return list
	})
}

// notice is how long a pod goes on after it is marked as terminating: a preStop hook that sleeps.
const notice = 3 * time.Second

// replace replaces the first pods, of which there are count, with new ones.
func (r *rollout) replace(count int) {
	old := r.pods[:count]
	next := append([]*pod{}, r.pods[count:]...)
	for _, p := range old {
		next = append(next, r.w.newPod(p.node).web())
	}
	for _, p := range next[len(next)-count:] {
		p.await()
	}
	r.w.step("new pods are ready")
	r.pods = append(append([]*pod{}, old...), next...)
	r.write()
	r.pods, r.leaving = next, old
	r.write()
	r.w.step("old pods terminate")
	told := r.w.follow(r.service, old)
	time.Sleep(notice)
	r.w.step("old pods stop listening")
	r.w.t.Logf("edges give %d pods nothing new %s", count, told())
	for _, p := range old {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range old {
		<-p.ended
		p.kill()
	}
	r.leaving = nil
	r.write()
	r.w.step("old pods are gone")
}

// step says when something happens.
func (w *world) step(what string) {
	w.t.Helper()
	w.t.Logf("%s %s", time.Now().Format("15:04:05.000"), what)
}

// await waits until the pod's server listens, as a readiness probe does.
func (p *pod) await() {
	p.w.t.Helper()
	c := clientOf(p.ns, false)
	p.w.eventually(p.name+" is ready", 30*time.Second, func() bool {
		_, err := fetch(c, "http://"+p.v4.String()+":8080/")
		return err == nil
	})
}

// Pods are replaced while clients ask for pages and download, with LONG set wrk among them, and
// while one edge and the controller are killed: nothing fails. A chain has six places, so
// connections outlive as many owners of their bucket; half of the pods is replaced here, and with
// LONG set 25 of 50.
func (w *world) testRollingUpdate() {
	count, batch, pieces := 8, 2, 40
	if os.Getenv("LONG") != "" {
		count, batch, pieces = 50, 13, 200
	}
	r := rollout{w: w, service: "roll"}
	for i := range count {
		r.pods = append(r.pods, w.newPod(1+i%2).web())
	}
	for _, p := range r.pods {
		p.await()
	}
	r.write()
	w.service("roll", 80, nil)
	w.eventually("the Service has addresses", 30*time.Second,
		func() bool { return len(w.ingress("roll")) == 2 })
	ns := w.netns("client")
	first, l := map[string]bool{}, newLoad(w.t.Context())
	for _, p := range r.pods {
		first[p.name] = true
	}
	for _, url := range w.urls("roll") {
		w.eventually("all pods serve", 120*time.Second, func() bool {
			_, err := w.getWithin(url, "1")
			return err == nil && w.backends("roll") == count
		})
		for range 4 {
			l.ask(clientOf(ns, false), url, 20*time.Millisecond)
			l.ask(clientOf(ns, true), url, 20*time.Millisecond)
			l.download(clientOf(ns, false), url, pieces)
		}
		if os.Getenv("LONG") != "" {
			l.wrk(w, ns, url)
			l.wrk(w, ns, url, "-H", "Connection: close")
		}
	}
	begun := time.Now()
	for i := 0; i < count/2; i += batch {
		switch {
		case i == 0:
			w.controller.stop(syscall.SIGKILL)
			w.startController()
		case i/batch == 1:
			must(w.t, w.netns("router").Do(func() error {
				return linuxtest.IP("link set edge1 down")
			}))
		}
		r.replace(min(batch, count/2-i))
	}
	w.t.Logf("%d of %d pods replaced in %v", count/2, count, time.Since(begun))
	l.stop()
	w.t.Logf("%d pages, %d downloads", l.pages.Load(), l.downloads.Load())
	for i, text := range l.failures {
		if i < 10 || os.Getenv("LONG") != "" && i%50 == 0 {
			w.t.Error(text)
		}
	}
	fresh := 0
	for name, pages := range l.served {
		if !first[name] {
			fresh += pages
		}
	}
	if len(l.failures) > 0 || fresh == 0 || l.downloads.Load() == 0 {
		w.t.Errorf("%d failures, %d pages of new pods, %d downloads", len(l.failures), fresh,
			l.downloads.Load())
	}
}
