package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Proxy serves the console, and an API, to one browser of this machine: the one that shows a code,
// which can be used once, and gets a token for it.
type Proxy struct {
	host  string // as the browser names it
	token string

	mu   sync.Mutex
	code string // "": it was used
}

// NewProxy makes a proxy for the host and port by which browsers reach it.
func NewProxy(host string) *Proxy {
	return &Proxy{host: host, code: rand.Text(), token: rand.Text()}
}

// URL is the address of the console, with the code.
func (p *Proxy) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "http://" + p.host + Path + "#code=" + p.code
}

const maxSession = 1 << 10 // bytes

// Handler serves the console beside an API. A page of another origin gets nothing, also if its name
// leads here.
func (p *Proxy) Handler(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path+"session", p.session)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(text), []byte(p.token)) != 1 {
			refuse(w, http.StatusUnauthorized, "this page was not opened by its address; run "+
				"sextant console again, and open what it prints")
			return
		}
		r.Header.Del("Authorization")
		w.Header().Set("Cache-Control", "no-store")
		api.ServeHTTP(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing here; the console is at "+Path)
	})
	console := Beside(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != p.host {
			refuse(w, http.StatusMisdirectedRequest, "the console is at http://"+p.host+Path)
			return
		}
		console.ServeHTTP(w, r)
	})
}

// session changes the code for the token, once.
func (p *Proxy) session(w http.ResponseWriter, r *http.Request) {
	var shown struct {
		Code string `json:"code"`
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxSession))
	if err == nil {
		err = json.Unmarshal(text, &shown)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.code == "" ||
		subtle.ConstantTimeCompare([]byte(shown.Code), []byte(p.code)) != 1 {
		refuse(w, http.StatusUnauthorized, "the code of this address was used already, or is not "+
			"right; run sextant console again")
		return
	}
	p.code = ""
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{"token": p.token})
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"error": map[string]string{"code": "refused", "message": message}})
}
