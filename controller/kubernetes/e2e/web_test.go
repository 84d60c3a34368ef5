package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sextant/linux"
)

// webName is the variable by which this program is the web server of a pod.
const webName = "SEXTANT_E2E_WEB"

const (
	pieceBytes = 16 << 10
	pieceTime  = 100 * time.Millisecond
)

// farewell is how long a server that ends has clients of kept connections close them: those that
// it closes itself may have a request on its way.
const farewell = time.Second

// runWeb serves until it is told to end and its last answer is out, as servers in pods should.
func runWeb(name string) {
	mux := http.NewServeMux()
	var ends atomic.Bool
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	mux.HandleFunc("/download", func(w http.ResponseWriter, r *http.Request) {
		pieces, _ := strconv.Atoi(r.URL.Query().Get("pieces"))
		w.Header().Set("Content-Length", strconv.Itoa(pieces*pieceBytes))
		for range pieces {
			if _, err := w.Write(make([]byte, pieceBytes)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // the next write says what is wrong
			time.Sleep(pieceTime)
		}
	})
	server := http.Server{Addr: ":8080", Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if ends.Load() {
				w.Header().Set("Connection", "close")
			}
			mux.ServeHTTP(w, r)
		})}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		<-told
		ends.Store(true)
		time.Sleep(farewell)
		_ = server.Shutdown(context.Background())
		close(ended)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ended
}

// web starts the pod's web server.
func (p *pod) web() *pod {
	p.env = []string{webName + "=" + p.name}
	p.run(os.Args[0])
	return p
}

// load asks for pages and downloads until it is stopped, and counts what fails.
type load struct {
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup
	pages     atomic.Int64
	downloads atomic.Int64
	mu        sync.Mutex
	failures  []string
	served    map[string]int
	wrks      []func() // ends that program
}

func newLoad(ctx context.Context) *load {
	l := &load{served: map[string]int{}}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// clientOf opens connections from a network namespace.
func clientOf(ns *linux.Netns, keep bool) *http.Client {
	return &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{
		DisableKeepAlives: !keep,
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = ns.Do(func() (err error) {
				c, err = new(net.Dialer).DialContext(ctx, network, address)
				return err
			})
			return c, err
		}}}
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now().Format("15:04:05.000 ")
	l.failures = append(l.failures, at+fmt.Sprintf(format, args...))
}

// ask asks for pages, one every so often, each with a connection of its own or all with one.
func (l *load) ask(c *http.Client, url string, every time.Duration) {
	l.work.Go(func() {
		for l.ctx.Err() == nil {
			begun := time.Now()
			body, err := fetch(c, url)
			if err != nil {
				l.fail("page after %v: %v", time.Since(begun), err)
				continue
			}
			l.pages.Add(1)
			l.mu.Lock()
			l.served[body]++
			l.mu.Unlock()
			select {
			case <-l.ctx.Done():
			case <-time.After(every):
			}
		}
	})
}

// wrk has the program of that name ask for pages from a network namespace as quickly as they come.
func (l *load) wrk(w *world, ns *linux.Netns, url string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("wrk", append(args, "-t", "1", "-c", "4", "-d", "1h", "--timeout", "30s",
		url)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(w.t, linux.Start(cmd, ns, nil))
	w.t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test ends before
	l.wrks = append(l.wrks, func() {
		_ = cmd.Process.Signal(os.Interrupt) // then it says what it saw
		if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "Socket errors") {
			l.fail("wrk %s %q: %v: %s", url, args, err, out.String())
		}
		l.pages.Add(int64(w.number(out.String(), `(\d+) requests in ()`)))
	})
}

// download downloads, which takes as long as pieces do, until it is stopped.
func (l *load) download(c *http.Client, url string, pieces int) {
	l.work.Go(func() {
		for l.ctx.Err() == nil {
			begun := time.Now()
			body, err := fetch(c, fmt.Sprintf("%sdownload?pieces=%d", url, pieces))
			if err != nil || len(body) != pieces*pieceBytes {
				l.fail("download after %v: %d bytes, %v", time.Since(begun), len(body), err)
				continue
			}
			l.downloads.Add(1)
		}
	})
}

func fetch(c *http.Client, url string) (string, error) {
	answer, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// stop ends the load when the last answer is there.
func (l *load) stop() {
	l.cancel()
	for _, end := range l.wrks {
		end()
	}
	l.work.Wait()
}
