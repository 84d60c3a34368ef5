package agent_test

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sextant/agent/archive"
	"sextant/agent/archive/archivetest"
	"sextant/config"
	"sextant/lb/pool"
)

const chainsURL = "http://127.0.0.1:9477/v1/chains"

// ask asks an agent for chains, with headers that may be none.
func (m *machine) ask(endpoint string, headers map[string]string) (*http.Response, string) {
	m.t.Helper()
	query := url.Values{"endpoint": {endpoint}}
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet,
		chainsURL+"?"+query.Encode(), nil)
	must(m.t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(_ context.Context, network, to string) (c net.Conn, err error) {
		doErr := m.ns.Do(func() error { c, err = net.Dial(network, to); return nil })
		return c, errors.Join(doErr, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	must(m.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(m.t, err)
	return response, string(text)
}

// signed are the headers of a request with a nonce, signed over a fresh challenge for an endpoint.
func (m *machine) signed(secret []byte, endpoint, nonce string) map[string]string {
	m.t.Helper()
	response, _ := m.ask(endpoint, map[string]string{"Sextant-Version": "2"})
	challenge := response.Header.Get("Sextant-Challenge")
	return map[string]string{
		"Sextant-Version": "2", "Sextant-Challenge": challenge, "Sextant-Nonce": nonce,
		"Sextant-Signature": sign(secret, "chains-request", endpoint, challenge,
			string(mustHex(m.t, nonce))),
	}
}

const aNonce = "000102030405060708090a0b0c0d0e0f"

// An edge of the cluster gets chains, signed for its question; the same request gets none again.
func TestEdgeTellsPeers(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	r := m.start(withMetrics(exactText))
	defer r.stop()
	secret := clusterSigning(t)
	headers := m.signed(secret, webEndpoint, aNonce)
	response, record := m.ask(webEndpoint, headers)
	digest := sha256.Sum256([]byte(record))
	want := sign(secret, "chains-answer", webEndpoint, headers["Sextant-Challenge"],
		string(mustHex(t, aNonce)), string(digest[:]))
	if got := response.Header.Get("Sextant-Signature"); got != want {
		t.Errorf("%s: signed %q, want %q", response.Status, got, want)
	}
	chains, err := pool.ParseRecord([]byte(record))
	if err != nil || len(chains) != config.DefaultBuckets || chains[0].Length == 0 {
		t.Errorf("told %d chains, %v", len(chains), err)
	}
	if response, text := m.ask(webEndpoint, headers); response.StatusCode != 401 {
		t.Errorf("the same request once more: %s, %.40q", response.Status, text)
	}
	response, _ = m.ask("other", m.signed(secret, "other", aNonce))
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("for another service: %s", response.Status)
	}
}

// Strangers get no chains, and no signature over what they chose.
func TestStrangersGetNoChains(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	r := m.start(withMetrics(exactText))
	defer r.stop()
	secret := clusterSigning(t)
	good := func() map[string]string { return m.signed(secret, webEndpoint, aNonce) }
	with := func(pairs ...string) map[string]string {
		h := good()
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	elsewhere := m.signed(secret, "[2001:db8:80::80]:81/tcp", aNonce)
	for name, test := range map[string]struct {
		headers map[string]string
		status  int
		says    string
	}{
		"none": {nil, 426,
			`this request has version ""; run the same Sextant on both`},
		"of another version": {with("Sextant-Version", "3"), 426, `this request has version "3"`},
		"a version alone": {map[string]string{"Sextant-Version": "2"}, 401,
			"sign the challenge"},
		"another secret": {m.signed(make([]byte, 16), webEndpoint, aNonce), 401, "not signed"},
		"another flow hash": {m.signed(mustHex(t, clusterSecret), webEndpoint, aNonce), 401,
			"not signed"},
		"for another place": {elsewhere, 401, "not signed"},
		"another nonce":     {with("Sextant-Nonce", strings.Repeat("0", 32)), 401, "not signed"},
		"a nonce of a form of its own": {
			with("Sextant-Nonce", "etcd edge9\n"), 401, "the nonce can't be read"},
		"a nonce too long": {with("Sextant-Nonce", aNonce+"00"), 401, "the nonce can't be read"},
		"its own challenge": {
			with("Sextant-Challenge", strings.Repeat("0", 112)), 401, "not of this edge"},
		"half a challenge": {with("Sextant-Challenge", "00"), 401, "the challenge can't be read"},
		"half a signature": {with("Sextant-Signature", "00"), 401, "not signed"},
		"no signature":     {with("Sextant-Signature", ""), 401, "not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range test.headers {
				if strings.Contains(value, "\n") { // no header holds one
					test.headers[key] = strings.ReplaceAll(value, "\n", " ")
				}
			}
			response, text := m.ask(webEndpoint, test.headers)
			if response.StatusCode != test.status || !strings.Contains(text, test.says) {
				t.Errorf("%s: %.200q, want %d and %q", response.Status, text, test.status,
					test.says)
			}
			if signature := response.Header.Get("Sextant-Signature"); signature != "" {
				t.Errorf("a stranger has the signature %s", signature)
			}
		})
	}
}

// What a stranger makes of an edge's answers passes for no record in etcd.
func TestAnswersAreNoRecords(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	r := m.start(withMetrics(exactText))
	forged := deflate(t, recordOf(t, 65537, 3))
	query := url.Values{"endpoint": {webEndpoint}, "nonce": {"etcd edge9\n" + string(forged)}}
	response, record := m.get(t, chainsURL+"?"+query.Encode())
	r.stop()
	data := fmt.Sprintf("%s%s\n%s", response.Header.Get("Sextant-Signature"), forged, record)
	hand := archive.New(server.Etcd())
	defer hand.Close()
	must(t, hand.Put(t.Context(), webEndpoint, "edge9", []byte(data)))
	r = newMachine(t).start(strings.Replace(withEtcd(server.Text()), "node: both1", "node: edge2",
		1))
	defer r.stop()
	for i, chain := range r.who() {
		if strings.Contains(chain, " ") {
			t.Fatalf("flow %d is offered to %q: a forged record was believed", i, chain)
		}
	}
}

func deflate(t *testing.T, plain string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	must(t, err)
	_, err = w.Write([]byte(plain))
	must(t, err)
	must(t, w.Close())
	return packed.Bytes()
}

// An answer counts for the question that it answers: not one that was recorded earlier, not one
// with chains of another, and not one that is too long.
func TestAnswersOfOthersAreNotBelieved(t *testing.T) {
	secret := clusterSigning(t)
	other := recordOf(t, 65537, 2)
	digest := sha256.Sum256([]byte(other))
	for name, edit := range map[string]func(h http.Header, record string) string{
		"other chains": func(_ http.Header, _ string) string { return other },
		"other chains with their digest": func(h http.Header, _ string) string {
			h.Set("Sextant-Digest", hex.EncodeToString(digest[:]))
			return other
		},
		"an earlier answer": func(h http.Header, _ string) string {
			h.Set("Sextant-Digest", hex.EncodeToString(digest[:]))
			h.Set("Sextant-Signature", sign(secret, "chains-answer", webEndpoint,
				"what I want signed", string(mustHex(t, aNonce)), string(digest[:])))
			return other
		},
		"bytes behind": func(_ http.Header, record string) string { return record + "\x00" },
		"a part":       func(_ http.Header, record string) string { return record[:len(record)-1] },
		"no signature": func(h http.Header, record string) string {
			h.Del("Sextant-Signature")
			return record
		},
		"far too much": func(_ http.Header, record string) string {
			return strings.Repeat(record,
				8)
		},
		"no digest": func(h http.Header, record string) string {
			h.Del("Sextant-Digest")
			return record
		},
		"what it said": nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := fakePeer(t, secret, recordOf(t, 65537, 3))
			f.edit = edit
			peers := fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", f.address)
			r := newMachine(t).start(strings.Replace(exactText, "  source: fd00:5e::e1\n", peers,
				1))
			defer r.stop()
			for i, chain := range r.who() {
				if edit == nil && !strings.Contains(chain, "web3") {
					t.Fatalf("flow %d is offered to %q; its owner at the peer was web3", i, chain)
				}
				if edit != nil && strings.Contains(chain, " ") {
					t.Fatalf("flow %d is offered to %q: the answer was believed", i, chain)
				}
			}
		})
	}
}

// A peer that was not there when the edge started is asked until it is; the status says so. What it
// tells has its place in chains that the edge has filled with reserves, too.
func TestPeersTellThePastLate(t *testing.T) {
	for name, text := range map[string]string{
		"exact": exactText,
		"rendezvous": strings.Replace(nodeText, "      port: 80\n",
			"      port: 80\n      candidates: 1\n      depth: 2\n", 1),
	} {
		t.Run(name, func(t *testing.T) { peersTellLate(t, text) })
	}
}

func peersTellLate(t *testing.T, text string) {
	t.Helper()
	secret := clusterSigning(t)
	f := fakePeer(t, secret, recordOf(t, config.DefaultBuckets, 3))
	f.away.Store(true)
	peers := fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", f.address)
	r := newMachine(t).start(strings.Replace(text, "  source: fd00:5e::e1\n", peers, 1))
	defer r.stop()
	if !slices.ContainsFunc(r.who(), func(chain string) bool {
		return !strings.Contains(chain, "web3")
	}) {
		t.Fatal("the past is known before anybody told it")
	}
	const warning = "has not yet been told who had its buckets by"
	if !r.warned(warning) {
		t.Error("the status does not say that a peer did not answer")
	}
	f.away.Store(false)
	eventually(t, "told", func() bool { return !r.warned(warning) })
	for i, chain := range r.who() {
		if !strings.Contains(chain, "web3") {
			t.Fatalf("flow %d is offered to %q; its owner at the peer was web3", i, chain)
		}
	}
}
