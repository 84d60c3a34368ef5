package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundtest"
	"sextant/config"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// logged is a log that any goroutine may write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// remote is a daemon whose API is served over TLS.
type remote struct {
	t         *testing.T
	authority *southboundtest.Authority
	files     southbound.Files
	listen    config.Listen
	address   string
	log       *logged
	servers   *Servers
	slow      slow
}

// slow are requests for /slow, which are answered when end is closed.
type slow struct {
	begun, end chan struct{}
	now        atomic.Int32
}

// counted answers GET /read, PUT /compare, PUT /operate and PUT /admin to those who may, and
// streams on /stream until the caller leaves.
func counted(t *testing.T, slow *slow) http.Handler {
	mux := http.NewServeMux()
	for pattern, needs := range map[string]api.Permission{
		"GET /read": api.Read, "PUT /compare": api.Read, "PUT /operate": api.Operate,
		"PUT /admin": api.Admin,
	} {
		answer := api.Needs(needs, func(r *http.Request) (any, error) {
			text, err := io.ReadAll(r.Body)
			return fmt.Sprintf("%s, %d bytes", api.CallerOf(r.Context()), len(text)), err
		})
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			value, err := answer(r)
			if err != nil {
				api.Refuse(w, err)
				return
			}
			if err := json.NewEncoder(w).Encode(value); err != nil {
				t.Log(err)
			}
		})
	}
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /slow", func(http.ResponseWriter, *http.Request) {
		slow.now.Add(1)
		slow.begun <- struct{}{}
		<-slow.end
	})
	return mux
}

func serve(t *testing.T, clients bool) *remote {
	t.Helper()
	dir := t.TempDir()
	r := &remote{t: t, authority: southboundtest.NewAuthority(t, dir), log: &logged{}}
	r.files = r.authority.Leaf(t, "node", loopback)
	r.listen = config.Listen{Address: netip.AddrPortFrom(loopback, 0),
		Certificate: r.files.Certificate, Key: r.files.Key, Tokens: filepath.Join(dir, "tokens")}
	if clients {
		r.listen.ClientCA = r.files.CA
	}
	if err := os.WriteFile(r.listen.Tokens, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if r.servers, err = Listen("agent", "api.socket", filepath.Join(dir, "socket"),
		netip.AddrPort{}, log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.servers.Stop)
	if err := r.servers.ListenTLS(&r.listen); err != nil {
		t.Fatal(err)
	}
	r.slow.begun, r.slow.end = make(chan struct{}, 100), make(chan struct{})
	r.servers.Serve(counted(t, &r.slow), nil)
	r.address = r.servers.remote.Addr().String()
	return r
}

// token adds a token, and returns its text.
func (r *remote) token(label string, role api.Permission, expires time.Time) string {
	r.t.Helper()
	t, text, err := access.NewToken(label, role, expires)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := access.EditTokens(r.listen.Tokens, func(all []access.Token) ([]access.Token, error) {
		return append(all, t), nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return text
}

// client trusts the test's authority and, if it has files, shows a certificate.
func (r *remote) client(files *southbound.Files) *http.Client {
	pem, err := os.ReadFile(r.files.CA)
	if err != nil {
		r.t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(pem)
	if files != nil {
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			r.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: c}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a request with a token, and returns the status and the answer.
func (r *remote) ask(c *http.Client, method, path, token string, body io.Reader) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "https://"+r.address+path,
		body)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Error(err)
	}
	return response.StatusCode, string(text)
}

// Each role may do what it says and what those below it say; no token, and none that is wrong or
// has expired, may do anything. The log says who did what.
func TestTokens(t *testing.T) {
	r := serve(t, false)
	c := r.client(nil)
	read := r.token("grafana", api.Read, time.Time{})
	operate := r.token("nightshift", api.Operate, time.Now().Add(time.Hour))
	admin := r.token("ada", api.Admin, time.Time{})
	expired := r.token("former", api.Admin, time.Now().Add(-time.Minute))
	for _, step := range []struct {
		method, path, token string
		want                int
		text                string
	}{
		{"GET", "/read", "", 401, "a token is needed"},
		{"GET", "/nowhere", "", 401, "a token is needed"},
		{"GET", "/read", "wrong", 401, "the token is not valid"},
		{"GET", "/read", admin[:len(admin)-1], 401, "the token is not valid"},
		{"GET", "/read", expired, 401, "the token has expired"},
		{"GET", "/read", read, 200, "token grafana (127.0.0.1:"},
		{"PUT", "/operate", read, 403, "needs the role operate, and the token has the role read"},
		{"PUT", "/admin", read, 403, "this needs the role admin"},
		{"GET", "/read", operate, 200, "token nightshift"},
		{"PUT", "/operate", operate, 200, "token nightshift"},
		{"PUT", "/admin", operate, 403, "this needs the role admin"},
		{"PUT", "/admin", admin, 200, "token ada"},
	} {
		status, text := r.ask(c, step.method, step.path, step.token, strings.NewReader("{}"))
		if status != step.want || !strings.Contains(text, step.text) {
			t.Errorf("%s %s with token %.12q: %d %s, not %d with %q", step.method, step.path,
				step.token, status, text, step.want, step.text)
		}
	}
	for _, line := range []string{`by="token nightshift (127.0.0.1:`, `method=PUT path=/operate`,
		`by="token ada (127.0.0.1:`, "reason=no_token"} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, r.log)
		}
	}
	for _, secret := range []string{read, operate, admin} {
		if strings.Contains(r.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
	got := r.servers.gate.Refusals()
	if got[access.NoToken] != 2 || got[access.WrongToken] != 2 || got[access.Expired] != 1 ||
		got[access.NotPermitted] != 3 {
		t.Errorf("refusals: %v", got)
	}
}

// A token that is removed ends the streams of its holder, and a file of tokens that can't be read,
// or that others can read, lets nobody in.
func TestTokensAreReadAnew(t *testing.T) {
	r := serve(t, false)
	c := r.client(nil)
	token := r.token("brief", api.Admin, time.Time{})
	request, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+r.address+"/stream",
		nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("the stream began with %q, %v", line, err)
	}
	err = access.EditTokens(r.listen.Tokens,
		func([]access.Token) ([]access.Token, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("the stream goes on")
	}
	if status, _ := r.ask(c, "GET", "/read", token, nil); status != 401 {
		t.Errorf("a removed token: %d", status)
	}
	token = r.token("next", api.Read, time.Time{})
	if status, _ := r.ask(c, "GET", "/read", token, nil); status != 200 {
		t.Errorf("a new token: %d", status)
	}
	for _, spoil := range []func() error{
		func() error { return os.Chmod(r.listen.Tokens, 0o644) },
		func() error { return os.WriteFile(r.listen.Tokens, []byte("next read"), 0o600) },
		func() error { return os.Remove(r.listen.Tokens) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if status, text := r.ask(c, "GET", "/read", token, nil); status != 401 ||
			!strings.Contains(text, "the node can't read its tokens") {
			t.Errorf("spoilt tokens: %d %s", status, text)
		}
	}
	if !strings.Contains(r.log.String(), "others can read or write it (mode 0644)") {
		t.Errorf("the log does not say why:\n%s", r.log)
	}
}

// HTTP without TLS is refused, and so are TLS 1.2 and, where certificates are wanted, clients
// without one.
func TestTransport(t *testing.T) {
	r := serve(t, true)
	token := r.token("ada", api.Admin, time.Time{})
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /read HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
	text, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(text), "HTTP/1.0 400 Bad Request") {
		t.Errorf("plain HTTP: %q", text)
	}
	files := r.authority.Leaf(t, "client")
	c := r.client(&files)
	if status, text := r.ask(c, "GET", "/read", token, nil); status != 200 {
		t.Errorf("with a certificate: %d %s", status, text)
	}
	if status, _ := r.ask(c, "GET", "/read", "", nil); status != 401 {
		t.Errorf("with a certificate, without a token: %d", status)
	}
	if status, text := r.ask(r.client(nil), "GET", "/read", token, nil); status != 0 ||
		!strings.Contains(text, "certificate required") {
		t.Errorf("without a certificate: %d %s", status, text)
	}
	other := southboundtest.NewAuthority(t, t.TempDir()).Leaf(t, "stranger")
	if status, text := r.ask(r.client(&other), "GET", "/read", token, nil); status != 0 {
		t.Errorf("with a stranger's certificate: %d %s", status, text)
	}
	old := r.client(&files)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	if status, text := r.ask(old, "GET", "/read", token, nil); status != 0 ||
		!strings.Contains(text, "protocol version") {
		t.Errorf("TLS 1.2: %d %s", status, text)
	}
}

// A new certificate holds from the next connection on; one that can't be used changes nothing.
func TestCertificateRotation(t *testing.T) {
	r := serve(t, false)
	token := r.token("ada", api.Admin, time.Time{})
	serial := func() string {
		t.Helper()
		c := r.client(nil)
		request, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+r.address+"/read",
			nil)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.TLS.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if err := os.WriteFile(r.listen.Certificate, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != first {
		t.Error("a certificate that can't be read replaced the former one")
	}
	if !strings.Contains(r.log.String(), "goes on with its former certificate") {
		t.Errorf("the log does not say so:\n%s", r.log)
	}
	r.authority.Leaf(t, "node", loopback) // into the same files
	if got := serial(); got == first {
		t.Error("the new certificate is not shown")
	}
}

// What others can read is refused at the start.
func TestOpenSecretsAreRefused(t *testing.T) {
	for _, which := range []string{"key", "tokens"} {
		r := serve(t, false)
		name := map[string]string{"key": r.listen.Key, "tokens": r.listen.Tokens}[which]
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := access.Open(r.listen, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), "api.listen: read "+which+" "+name+
				": others can read or write it (mode 0644)") {
			t.Errorf("%s that others can read: %v", which, err)
		}
	}
}

// Clients that send nothing, or too much, take places and memory of the TLS port alone: the socket
// answers beside them, and so does the port to another source.
func TestSlowAndHugeClients(t *testing.T) {
	r := serve(t, false)
	read := r.token("grafana", api.Read, time.Time{})
	var slow []net.Conn
	for range maxSourceConnections {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		slow = append(slow, conn)
	}
	// it is reset, at once or a moment later
	if refused, err := net.Dial("tcp", r.address); err == nil {
		defer refused.Close()
		if n, err := refused.Read(make([]byte, 1)); err == nil {
			t.Errorf("one more connection of the source got %d bytes", n)
		}
	}
	socket := api.NewClient(r.servers.socket.Addr().String())
	if _, err := api.Ask[string](t.Context(), socket, "GET", "/read", nil, nil); err != nil {
		t.Errorf("the socket beside slow clients: %v", err)
	}
	for _, conn := range slow {
		conn.Close()
	}
	for open := 1; open > 0; time.Sleep(time.Millisecond) { // until the server has seen it
		open, _ = r.servers.remote.use()
	}
	c := r.client(nil)
	huge := io.LimitReader(zeros{}, 64<<20)
	// the server may end the connection before it has answered
	if status, text := r.ask(c, "GET", "/read", read, huge); status == 200 {
		t.Errorf("a huge body of a reader: %d %s", status, text)
	}
	request, _ := http.NewRequestWithContext(context.Background(), "GET",
		"https://"+r.address+"/read", nil)
	request.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 2*maxHeaderBytes))
	if response, err := c.Do(request); err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a huge header: %s", response.Status)
		}
	}
}

// Those who may only read, and send their requests slowly, do not keep others from changes.
func TestSlowReadersDoNotBlockOperators(t *testing.T) {
	r := serve(t, false)
	read := r.token("grafana", api.Read, time.Time{})
	operate := r.token("ada", api.Operate, time.Time{})
	arrived := make(chan struct{})
	var ended atomic.Int32
	var asking sync.WaitGroup
	t.Cleanup(asking.Wait)
	for range maxSourceConnections - 1 {
		body, begin := io.Pipe()
		t.Cleanup(func() { begin.Close() })
		c := r.client(nil)
		asking.Go(func() {
			r.ask(c, "PUT", "/compare", read, body)
			ended.Add(1)
		})
		go func() {
			_, _ = begin.Write([]byte("a beginning")) // the server takes it, or the test has ended
			arrived <- struct{}{}
		}()
	}
	for range maxSourceConnections - 1 {
		<-arrived // each is on its way; some wait for a place
	}
	if status, text := r.ask(r.client(nil), "PUT", "/operate", operate, nil); status != 200 {
		t.Errorf("a change beside slow readers: %d %s", status, text)
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("it had to wait until %d readers were cut off", n)
	}
}

// Streams and answers that nobody reads keep no place of those that are worked on: as many readers
// as there are places for, and more, watch, and one more is answered.
func TestStreamsKeepNoPlace(t *testing.T) {
	r := serve(t, false)
	read := r.token("grafana", api.Read, time.Time{})
	c := r.client(nil)
	for range maxSourceConnections - 1 {
		request, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+r.address+
			"/stream", nil)
		request.Header.Set("Authorization", "Bearer "+read)
		response, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
	}
	if status, text := r.ask(r.client(nil), "GET", "/read", read, nil); status != 200 {
		t.Errorf("an answer beside streams: %d %s", status, text)
	}
}

// Of the requests of readers, four are worked on at a time.
func TestFewReadersAtATime(t *testing.T) {
	r := serve(t, false)
	read := r.token("grafana", api.Read, time.Time{})
	operate := r.token("ada", api.Operate, time.Time{})
	var answered sync.WaitGroup
	defer answered.Wait()
	defer close(r.slow.end)
	for range 8 {
		answered.Go(func() { r.ask(r.client(nil), "GET", "/slow", read, nil) })
	}
	for range 4 {
		<-r.slow.begun
	}
	if status, text := r.ask(r.client(nil), "GET", "/read", operate, nil); status != 200 {
		t.Errorf("an operator beside readers: %d %s", status, text)
	}
	if n := r.slow.now.Load(); n != 4 {
		t.Errorf("%d requests of readers are worked on, want 4", n)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
