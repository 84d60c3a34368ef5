package peer_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/peer"
	"sextant/packet/flow"
)

const path = "/v1/connections"

var secret = flow.Secret{1, 2, 3}

// sign is the signature that the documentation of package signing describes, by this test's hand.
func sign(key flow.Secret, purpose string, fields ...string) string {
	hash := func(key, text []byte) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write(text)
		return mac.Sum(nil)
	}
	var text []byte
	for _, f := range fields {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(f))), f...)
	}
	return hex.EncodeToString(hash(hash(key[:], []byte("sextant/"+purpose+"/v1")), text))
}

// node answers with what it is told.
func node(t *testing.T, key flow.Secret, told string, status int) netip.AddrPort {
	t.Helper()
	return serve(t, peer.NewChallenges().Answer(
		func(context.Context) (flow.Secret, error) { return key, nil },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, told)
		})))
}

func serve(t *testing.T, h http.Handler) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// get sends one request by hand.
func get(t *testing.T, at netip.AddrPort, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+at.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(peer.VersionHeader, "2")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestAsk(t *testing.T) {
	got, err := peer.Ask(t.Context(), secret, node(t, secret, "told", 200), path)
	if string(got) != "told" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Nobody is told anything who does not know the secret, in all ways to ask.
func TestAnswerToNodesAlone(t *testing.T) {
	at := node(t, secret, "told", 200)
	nonce := strings.Repeat("ab", 16)
	challenge := func() string {
		response, _ := get(t, at, path)
		return response.Header.Get(peer.ChallengeHeader)
	}
	raw, err := hex.DecodeString(nonce)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(key flow.Secret, purpose, subject, challenge string) string {
		return sign(key, purpose, subject, challenge, string(raw))
	}
	own := at.String() + path
	used := challenge()
	ask := func(challenge, signature string) (*http.Response, string) {
		return get(t, at, path, peer.ChallengeHeader, challenge, peer.NonceHeader, nonce,
			peer.SignatureHeader, signature)
	}
	response, told := ask(used, signed(secret, "count-request", own, used))
	digest := sha256.Sum256([]byte(told))
	want := sign(secret, "count-answer", own, used, string(raw), string(digest[:]))
	if told != "told" || response.Header.Get(peer.SignatureHeader) != want {
		t.Fatalf("who signs is told %q, signed %q", told,
			response.Header.Get(peer.SignatureHeader))
	}
	for what, one := range map[string]func() (string, string){
		"nothing": func() (string, string) { return "", "" },
		"used challenge": func() (string, string) {
			return used, signed(secret, "count-request",
				own, used)
		},
		"own challenge": func() (string, string) {
			c := strings.Repeat("00", len(used)/2)
			return c, signed(secret, "count-request", own, c)
		},
		"another secret": func() (string, string) {
			c := challenge()
			return c, signed(flow.Secret{9}, "count-request", own, c)
		},
		"another purpose": func() (string, string) {
			c := challenge()
			return c, signed(secret, "chains-request", own, c)
		},
		"another node": func() (string, string) {
			c := challenge()
			return c, signed(secret, "count-request", "192.0.2.1:9477"+path, c)
		},
		"another path": func() (string, string) {
			c := challenge()
			return c, signed(secret, "count-request", at.String()+"/v1/merge", c)
		},
	} {
		response, told := ask(one())
		if response.StatusCode != http.StatusUnauthorized || strings.Contains(told, "told") ||
			response.Header.Get(peer.ChallengeHeader) == "" {
			t.Errorf("%s: %s, %q", what, response.Status, told)
		}
	}
	old, told := get(t, at, path, peer.VersionHeader, "1")
	if old.StatusCode != http.StatusUpgradeRequired || strings.Contains(told, "told") {
		t.Errorf("version 1: %s, %q", old.Status, told)
	}
}

// What is not signed by a node of the cluster is not believed.
func TestAskBelievesNodesAlone(t *testing.T) {
	edit := func(edit func(http.Header, string) (int, string)) netip.AddrPort {
		inner := node(t, secret, "told", 200)
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// a node between that passes on what it hears
			var headers []string
			for name := range r.Header {
				headers = append(headers, name, r.Header.Get(name))
			}
			response, body := get(t, inner, r.URL.Path, headers...)
			for name := range response.Header {
				if name != "Content-Length" {
					w.Header().Set(name, response.Header.Get(name))
				}
			}
			status, body := edit(w.Header(), body)
			if status == 0 {
				status = response.StatusCode
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
	}
	for _, c := range []struct {
		what string
		at   netip.AddrPort
		want string
	}{
		{"another secret", node(t, flow.Secret{9}, "told", 200), "is not signed with this cluster"},
		{"a failure", node(t, secret, "the agent is ending", 500),
			"500 Internal Server Error: the"},
		{"one that answers anyone", serve(t, http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })),
			"it answers anyone"},
		{"something else", serve(t, http.NotFoundHandler()), "it answers 404 Not Found"},
		{"one that takes another node's place", edit(
			func(_ http.Header, body string) (int, string) { return 0, body }),
			"is not signed with this cluster"},
		{"one that demands nothing", serve(t, http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(peer.VersionHeader, "2")
				if r.Header.Get(peer.SignatureHeader) == "" {
					w.Header().Set(peer.ChallengeHeader, "x")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.Header().Set(peer.SignatureHeader, r.Header.Get(peer.SignatureHeader))
				fmt.Fprint(w, "forged")
			})), "its answer is not signed"},
	} {
		got, err := peer.Ask(t.Context(), secret, c.at, path)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", c.what, got, err, c.want)
		}
	}
}
