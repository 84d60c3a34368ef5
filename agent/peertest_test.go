package agent_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

const clusterSecret = "00112233445566778899aabbccddeeff"

// clusterSigning is the secret with which edges of the cluster sign chains: they hash flows by NH.
func clusterSigning(t *testing.T) []byte {
	t.Helper()
	secret, err := flow.ParseSecret(clusterSecret)
	must(t, err)
	secret = flow.ByNH.Signing(secret)
	return secret[:]
}

// sign is the signature of docs/howto/operate.md, written a second time: a key for each purpose,
// and before each field its length.
func sign(secret []byte, purpose string, fields ...string) string {
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("sextant/" + purpose + "/v1"))
	mac := hmac.New(sha256.New, key.Sum(nil))
	for _, f := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(f)))
		mac.Write(length[:])
		mac.Write([]byte(f))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func mustHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	must(t, err)
	return b
}

// peer is another edge that has seen a backend more in each bucket of the web service. It answers
// with a secret.
func peer(t *testing.T, secret []byte, buckets int) netip.AddrPort {
	t.Helper()
	return peerOf(t, secret, buckets, 3)
}

// peerOf is another edge at which one backend had each bucket.
func peerOf(t *testing.T, secret []byte, buckets int, id uint16) netip.AddrPort {
	t.Helper()
	return fakePeer(t, secret, recordOf(t, buckets, id)).address
}

func recordOf(t *testing.T, buckets int, id uint16) string {
	t.Helper()
	spec := pool.Spec{Buckets: buckets, Candidates: 1}
	g, err := pool.New(spec, []pool.Backend{{ID: id, Weight: 1}}, 0)
	must(t, err)
	return string(g.Record())
}

// fake is an edge that this test has written.
type fake struct {
	address netip.AddrPort
	// edit changes an answer on its way; nil: it does not.
	edit func(answer http.Header, record string) string
	away atomic.Bool // it answers nothing of use
}

// fakePeer challenges who asks, and answers who knows the secret.
func fakePeer(t *testing.T, secret []byte, record string) *fake {
	t.Helper()
	f := &fake{}
	const challenge = "what I want signed"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint := r.FormValue("endpoint")
		if f.away.Load() {
			http.Error(w, "the agent is ending", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Sextant-Version", "2")
		if r.URL.Path != "/v1/chains" || endpoint != webEndpoint {
			http.NotFound(w, r)
			return
		}
		nonce, _ := hex.DecodeString(r.Header.Get("Sextant-Nonce"))
		signed := sign(secret, "chains-request", endpoint, challenge, string(nonce))
		if len(nonce) != 16 || r.Header.Get("Sextant-Signature") != signed {
			w.Header().Set("Sextant-Challenge", challenge)
			http.Error(w, "sign the challenge", http.StatusUnauthorized)
			return
		}
		digest := sha256.Sum256([]byte(record))
		w.Header().Set("Sextant-Digest", hex.EncodeToString(digest[:]))
		w.Header().Set("Sextant-Signature",
			sign(secret, "chains-answer", endpoint, challenge, string(nonce), string(digest[:])))
		body := record
		if f.edit != nil {
			body = f.edit(w.Header(), record)
		}
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	f.address = netip.MustParseAddrPort(server.Listener.Addr().String())
	return f
}
