package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// api answers everything, and says with which token.
var api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "api "+r.URL.Path+r.Header.Get("Authorization"))
})

func ask(h http.Handler, method, host, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The page comes with a policy by which it can load nothing but itself, and what it consists of
// names no other machine.
func TestPage(t *testing.T) {
	h := Beside(api)
	if w := ask(h, "GET", "node", "/v1/status", "", ""); w.Body.String() != "api /v1/status" {
		t.Errorf("the API beside the console: %s", w.Body)
	}
	if w := ask(h, "GET", "node", "/", "", ""); w.Header().Get("Location") != Path {
		t.Errorf("the root leads to %q", w.Header().Get("Location"))
	}
	var size int
	for _, name := range []string{"", "console.js", "console.css"} {
		w := ask(h, "GET", "node", Path+name, "", "")
		if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d with the policy %q", name, w.Code,
				w.Header().Get("Content-Security-Policy"))
		}
		for _, address := range regexp.MustCompile(`https?:[^"'\x60 ]*`).FindAllString(
			w.Body.String(), -1) {
			if !strings.HasPrefix(address, "http://www.w3.org/") { // a name, not a place
				t.Errorf("%s names %s", name, address)
			}
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(w.Body.Bytes())
		z.Close()
		size += packed.Len()
		r := httptest.NewRequest("GET", Path+name, nil)
		r.Header.Set("If-None-Match", w.Header().Get("ETag"))
		again := httptest.NewRecorder()
		if h.ServeHTTP(again, r); again.Code != http.StatusNotModified {
			t.Errorf("%s again: %d", name, again.Code)
		}
	}
	if size > 120_000 {
		t.Errorf("the console has %d bytes compressed, more than 120000", size)
	}
}

// The code of the address holds once; without the token that it brings, and under another name of
// this machine, there is no API.
func TestProxy(t *testing.T) {
	const host = "127.0.0.1:8080"
	p := NewProxy(host)
	h := p.Handler(api)
	_, code, _ := strings.Cut(p.URL(), "#code=")
	open := func(code string) *httptest.ResponseRecorder {
		return ask(h, "POST", host, Path+"session", "", `{"code":"`+code+`"}`)
	}
	for _, wrong := range []string{"", "x", code + "x"} {
		if w := open(wrong); w.Code != http.StatusUnauthorized {
			t.Errorf("code %q: %d", wrong, w.Code)
		}
	}
	w := open(code)
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Token == "" {
		t.Fatalf("the right code: %d %s", w.Code, w.Body)
	}
	if w := open(code); w.Code != http.StatusUnauthorized ||
		!strings.Contains(w.Body.String(), "was used already") {
		t.Errorf("the code again: %d %s", w.Code, w.Body)
	}
	if w := open(""); w.Code != http.StatusUnauthorized {
		t.Errorf("no code, when it was used: %d", w.Code)
	}
	for _, token := range []string{"", code, answer.Token + "x"} {
		if w := ask(h, "GET", host, "/v1/status", token, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("token %q: %d", token, w.Code)
		}
	}
	if w := ask(h, "GET", host, "/v1/status", answer.Token, ""); w.Body.String() !=
		"api /v1/status" {
		t.Errorf("the right token: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "evil.example:8080", "/v1/status", answer.Token, ""); w.Code !=
		http.StatusMisdirectedRequest {
		t.Errorf("another name: %d", w.Code)
	}
	if w := ask(h, "GET", host, "/metrics", answer.Token, ""); w.Code != http.StatusNotFound {
		t.Errorf("a path beside the API: %d", w.Code)
	}
}

// node runs Node in this folder.
func node(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		t.Log("not run: node is not installed")
		return
	}
	if text, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("node %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

func TestFunctionsOfThePage(t *testing.T) { node(t, "--test", "test/state.test.mjs") }

// The bundle is what the source says.
func TestBundleIsOfTheSource(t *testing.T) {
	if _, err := os.Stat("node_modules/esbuild"); err != nil {
		t.Log("not compared: esbuild is not there; make web fetches it")
		return
	}
	dir := t.TempDir()
	node(t, "build.mjs", dir, filepath.Join(dir, "api.d.ts"))
	built, err := os.ReadFile(filepath.Join(dir, "api.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	if committed, err := os.ReadFile("api.d.ts"); err != nil || !bytes.Equal(built, committed) {
		t.Errorf("api.d.ts is not what the API's description says (%v); run: make web", err)
	}
	node(t, "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
		"--allowImportingTsExtensions", "--moduleResolution", "bundler", "--module", "esnext",
		"test/types.ts")
	for name := range kinds {
		built, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		committed, err := bundle.ReadFile("bundle/" + name)
		if err != nil || !bytes.Equal(built, committed) {
			t.Errorf("bundle/%s is not what src/ says; run: make web", name)
		}
	}
}
