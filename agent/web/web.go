// Package web is the console: one page that daemons serve beside their API. Its source is in src/;
// make web builds bundle/, which is committed, so that building the program needs no Node.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
)

// Path is where the console is served.
const Path = "/console/"

//go:embed bundle
var bundle embed.FS

// policy lets the page load its own script and style sheet, and talk to the daemon that it came
// from; nothing else (Content Security Policy Level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var kinds = map[string]string{
	"index.html":  "text/html; charset=utf-8",
	"console.js":  "text/javascript; charset=utf-8",
	"console.css": "text/css; charset=utf-8",
}

// Beside answers requests for the console, which has no secrets, and all others by api. It panics
// if a file of the bundle was not committed, which any test would find.
func Beside(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle("GET /{$}", http.RedirectHandler(Path, http.StatusFound))
	for name, kind := range kinds {
		text, err := bundle.ReadFile(path.Join("bundle", name))
		if err != nil {
			panic("the console is not in this program: " + err.Error())
		}
		sum := sha256.Sum256(text)
		at, tag := Path+name, `"`+hex.EncodeToString(sum[:8])+`"`
		if name == "index.html" {
			at = Path + "{$}"
		}
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", kind)
			h.Set("Content-Security-Policy", policy)
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cache-Control", "no-cache")
			h.Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write(text) // a client that is gone needs no answer
		})
	}
	return mux
}
