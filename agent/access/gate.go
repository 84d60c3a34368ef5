package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// Bounds of what one caller can take, once its token is known.
const (
	maxReadBody = 1 << 20 // bytes of a request by a token that may only read
	// requests that are worked on at the same time, of each role, GET and others: those who may
	// only read keep nobody from work, and the event loop has few questions to answer before any
	// other. Each counts until its answer begins.
	maxReads  = 4
	maxWrites = 4
	// how often a request that lasts is looked at: its token may be removed
	recheckInterval    = 2 * time.Second
	refusalLogInterval = time.Second
)

// Gate lets requests in whose tokens are valid, each to what its token allows.
type Gate struct {
	tokens watched[[]Token]
	tls    watched[*tls.Config]
	valid  atomic.Pointer[tls.Config] // the last one that could be read
	log    *slog.Logger
	reads  map[api.Permission]chan struct{}
	writes map[api.Permission]chan struct{}

	mu        sync.Mutex
	refusals  map[Reason]uint64
	nextEntry time.Time // of refusals in the log
}

// Reason is why a request is refused.
type Reason string

// The reasons.
const (
	NoToken      Reason = "no_token"
	WrongToken   Reason = "wrong_token"
	Expired      Reason = "expired"
	NotPermitted Reason = "not_permitted"
	Unreadable   Reason = "tokens_unreadable" // the file of tokens
)

// Reasons are all of them.
var Reasons = []Reason{NoToken, WrongToken, Expired, NotPermitted, Unreadable}

// Open reads the files of a listener. The error says which one can't be used, and why.
func Open(l config.Listen, log *slog.Logger) (*Gate, error) {
	g := &Gate{log: log, reads: map[api.Permission]chan struct{}{},
		writes: map[api.Permission]chan struct{}{}, refusals: map[Reason]uint64{}}
	for _, role := range Roles {
		g.reads[role] = make(chan struct{}, maxReads)
		g.writes[role] = make(chan struct{}, maxWrites)
	}
	g.tokens.files = []string{l.Tokens}
	g.tokens.load = func() ([]Token, error) { return loadTokens(l.Tokens) }
	g.tls.files = []string{l.Certificate, l.Key}
	if l.ClientCA != "" {
		g.tls.files = append(g.tls.files, l.ClientCA)
	}
	g.tls.load = func() (*tls.Config, error) { return loadTLS(l) }
	tokens, _, err := g.tokens.get()
	if err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	if len(tokens) == 0 {
		log.Warn("nobody can use the API over TLS: there are no tokens", "tokens", l.Tokens)
	}
	first, _, err := g.tls.get()
	if err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	g.valid.Store(first)
	return g, nil
}

func loadTLS(l config.Listen) (*tls.Config, error) {
	certificate, err := os.ReadFile(l.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := readSecret("key", l.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", l.Certificate, l.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"http/1.1"}}
	if l.ClientCA != "" {
		text, err := os.ReadFile(l.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("read clientCA: %w", err)
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("clientCA %s holds no certificate; write certificates in PEM "+
				"into it", l.ClientCA)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// TLS is the configuration of the listener. Files that have changed hold from the next connection
// on; as long as the new ones can't be used, the former ones do.
func (g *Gate) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c, anew, err := g.tls.get()
			switch {
			case err != nil:
				if anew {
					g.log.Warn("the API goes on with its former certificate", "error", err)
				}
				return g.valid.Load(), nil
			case anew:
				g.log.Info("the API has another certificate")
				g.valid.Store(c)
			}
			return c, nil
		},
	}
}

// Handler answers requests with valid tokens by next, and refuses the others.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		text := bearer(r)
		token, reason := g.admit(text, time.Now())
		if reason != "" {
			g.refuse(r, reason, token.Label)
			w.Header().Set("WWW-Authenticate", `Bearer realm="sextant"`)
			api.Refuse(w, &api.Error{Code: api.Unauthorized, Message: meaning[reason]})
			return
		}
		g.serve(next, w, r, token, text)
	})
}

var meaning = map[Reason]string{
	NoToken: "a token is needed; send it as Authorization: Bearer, or name its file with " +
		"--token-file",
	WrongToken: "the token is not valid; ask for another one (sextant token add, on the node)",
	Expired:    "the token has expired; ask for another one (sextant token add, on the node)",
	Unreadable: "the node can't read its tokens; see its log",
}

// bearer is the token of a request (RFC 6750 section 2.1); "": none.
func bearer(r *http.Request) string {
	scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// admit finds the token of a text. The reason is "" if it is valid.
func (g *Gate) admit(text string, now time.Time) (Token, Reason) {
	if text == "" {
		return Token{}, NoToken
	}
	tokens, anew, err := g.tokens.get()
	if err != nil {
		if anew {
			g.log.Error("no token is valid", "error", err)
		}
		return Token{}, Unreadable
	}
	token, ok := holder(tokens, text)
	switch {
	case !ok:
		return Token{}, WrongToken
	case token.Expired(now):
		return token, Expired
	}
	return token, ""
}

// serve answers a request of a token's holder.
func (g *Gate) serve(next http.Handler, w http.ResponseWriter, r *http.Request, token Token,
	text string) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if !token.Expires.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, token.Expires)
		defer cancel()
	}
	defer g.endWith(text, cancel)()
	places := g.writes[token.Role]
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		places = g.reads[token.Role]
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	answer := &answer{Answered: api.StatusOf(w), begun: sync.OnceFunc(func() { <-places })}
	defer answer.begun()
	if token.Role == api.Read {
		r.Body = http.MaxBytesReader(w, r.Body, maxReadBody)
	}
	by := fmt.Sprintf("token %s (%s)", token.Label, r.RemoteAddr)
	access := api.NewAccess(token.Role)
	next.ServeHTTP(answer, r.WithContext(api.WithAccess(api.WithCaller(ctx, by), access)))
	switch {
	case answer.Status == http.StatusForbidden:
		g.refuse(r, NotPermitted, token.Label)
	case access.Needed() != "" && access.Needed() != api.Read:
		g.log.Info("API request", "by", by, "role", token.Role, "method", r.Method, "path",
			r.URL.Path, "query", r.URL.RawQuery, "status", answer.Status)
	}
}

// answer gives the place of its request back when it begins: who reads it slowly, or reads a
// stream, keeps nobody waiting.
type answer struct {
	*api.Answered
	begun func()
}

// WriteHeader is http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.begun()
	a.Answered.WriteHeader(status)
}

// Write is http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.begun()
	return a.Answered.Write(b)
}

// Flush is http.Flusher.
func (a *answer) Flush() {
	a.begun()
	a.Answered.Flush()
}

// endWith ends a request that lasts when its token is not valid any more. The function that it
// returns ends the watch.
func (g *Gate) endWith(text string, end func()) func() {
	ticker := time.NewTicker(recheckInterval)
	done := make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				if _, reason := g.admit(text, now); reason != "" {
					end()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// refuse counts a refused request, and notes it.
func (g *Gate) refuse(r *http.Request, reason Reason, label string) {
	g.mu.Lock()
	g.refusals[reason]++
	n, now := g.refusals[reason], time.Now()
	due := now.After(g.nextEntry)
	if due {
		g.nextEntry = now.Add(refusalLogInterval)
	}
	g.mu.Unlock()
	if due {
		g.log.Warn("API request refused", "reason", reason, "from", r.RemoteAddr, "token", label,
			"method", r.Method, "path", r.URL.Path, "refusedInAll", n)
	}
}

// Refusals returns how many requests were refused, by the reason.
func (g *Gate) Refusals() map[Reason]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[Reason]uint64{}
	for _, reason := range Reasons {
		counts[reason] = g.refusals[reason]
	}
	return counts
}
