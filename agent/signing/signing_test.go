package signing_test

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/agent/signing"
	"sextant/packet/flow"
)

var secret = flow.Secret{1, 2, 3}

// The signature is RFC 2104 over the text that the documentation describes.
func TestSign(t *testing.T) {
	hash := func(key []byte, text string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	key := hash(secret[:], "sextant/etcd-record/v1")
	text := "\x00\x00\x00\x00\x00\x00\x00\x02ab" + "\x00\x00\x00\x00\x00\x00\x00\x00"
	want := hex.EncodeToString(hash(key, text))
	got := signing.Sign(secret, signing.EtcdRecords, []byte("ab"), nil)
	if got.String() != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

// No two purposes or lists of fields have the same signature, however the same bytes are cut.
func TestSignaturesDiffer(t *testing.T) {
	purposes := []signing.Purpose{
		signing.Challenges, signing.ChainRequests, signing.ChainAnswers, signing.CountRequests,
		signing.CountAnswers, signing.EtcdRecords,
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "text")
		seen := map[signing.MAC]string{}
		for _, p := range purposes {
			for i := range len(text) + 1 {
				for _, fields := range [][][]byte{{text[:i], text[i:]}, {text[:i], nil, text[i:]}} {
					mac, what := signing.Sign(secret, p, fields...), fmt.Sprintf("%s %q", p, fields)
					if other, same := seen[mac]; same {
						t.Fatalf("%s and %s have the same signature", what, other)
					}
					seen[mac] = what
				}
			}
		}
	})
}

func TestChallenge(t *testing.T) {
	now := time.Unix(1000, 0)
	c := signing.NewChallenge(secret, signing.Nonce{7}, now.Add(10*time.Second))
	read, err := signing.ParseChallenge(c.String())
	if err != nil || read.String() != c.String() || read.Check(secret, now) != nil {
		t.Fatalf("read %v, %v; %v", read, err, read.Check(secret, now))
	}
	if err := read.Check(secret, now.Add(10*time.Second)); err == nil {
		t.Error("it never ends")
	}
	if err := read.Check(flow.Secret{9}, now); err == nil {
		t.Error("another edge takes it")
	}
	for i := range len(c.String()) {
		text := []byte(c.String())
		text[i] ^= 1
		read, err := signing.ParseChallenge(string(text))
		if err == nil && read.Check(secret, now) == nil {
			t.Fatalf("with another character at %d it is taken", i)
		}
	}
}

func record(chains string) signing.Record {
	return signing.Record{
		Endpoint: "[2001:db8::1]:80/tcp", Node: "edge1", At: time.Unix(1, 2),
		Chains: []byte(chains),
	}
}

func TestRecord(t *testing.T) {
	for _, chains := range []string{"", "a", strings.Repeat("chains", 1000)} {
		r := record(chains)
		read, err := signing.Open(secret, r.Endpoint, r.Node, r.Seal(secret), len(chains))
		if err != nil || string(read.Chains) != chains || !read.At.Equal(r.At) {
			t.Errorf("read %d bytes of %v, %v", len(read.Chains), read.At, err)
		}
		if len(chains) > 0 {
			_, err := signing.Open(secret, r.Endpoint, r.Node, r.Seal(secret), len(chains)-1)
			if err == nil || !strings.Contains(err.Error(), "at most would fit this service") {
				t.Errorf("more than fits: %v", err)
			}
		}
	}
}

// No record is read at another place, under another secret, or with any byte changed, cut or added.
func TestRecordIsSignedWhole(t *testing.T) {
	r := record("some chains, some chains, some chains")
	sealed := r.Seal(secret)
	refused := func(what string, key flow.Secret, endpoint, node string, b []byte) {
		t.Helper()
		if _, err := signing.Open(key, endpoint, node, b, 1000); err == nil {
			t.Errorf("%s: it is read", what)
		}
	}
	refused("another secret", flow.Secret{2}, r.Endpoint, r.Node, sealed)
	refused("another service", secret, "[2001:db8::1]:81/tcp", r.Node, sealed)
	refused("another node", secret, r.Endpoint, "edge2", sealed)
	refused("a byte behind", secret, r.Endpoint, r.Node, append(bytes.Clone(sealed), 0))
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 0x10
		refused(fmt.Sprintf("byte %d changed", i), secret, r.Endpoint, r.Node, changed)
		refused(fmt.Sprintf("%d bytes", i), secret, r.Endpoint, r.Node, sealed[:i])
	}
}

// What is signed but not as Seal writes it is refused: an edge with a defect can't grow another.
func TestRecordOfOddContent(t *testing.T) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(make([]byte, 1<<20))
	_ = w.Close()
	seal := func(size byte, packed []byte) []byte {
		header := append([]byte("SXER\x02\x00\x00\x00"), make([]byte, 16)...)
		header[len(header)-1] = size
		mac := signing.Sign(secret, signing.EtcdRecords, []byte("e"), []byte("n"), header, packed)
		return append(append(header, mac[:]...), packed...)
	}
	for want, b := range map[string][]byte{
		"do not have 100 bytes":      seal(100, packed.Bytes()),
		"1 bytes behind its end":     seal(0, []byte{1, 0, 0, 0xff, 0xff, 7}),
		"do not have 1 bytes":        seal(1, []byte{1, 0, 0, 0xff, 0xff}),
		"decompress its chains: une": seal(1, nil),
		"decompress its chains: fla": seal(1, []byte("no such stream")),
	} {
		_, err := signing.Open(secret, "e", "n", b, 1<<20)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Whatever lies in etcd is read as it was sealed, or refused.
func FuzzOpen(f *testing.F) {
	r := record("chains")
	f.Add(r.Seal(secret))
	f.Add([]byte("SXER\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		read, err := signing.Open(secret, r.Endpoint, r.Node, sealed, 1<<10)
		if err == nil && !bytes.Equal(read.Seal(secret), sealed) {
			t.Errorf("%q is read as %+v", sealed, read)
		}
	})
}

// The stream that a record has inside never grows beyond what it should have, nor ends early.
func FuzzOpenSigned(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0xff, 0xff}, byte(0))
	f.Add([]byte{0x4b, 0x04, 0x00}, byte(1))
	f.Fuzz(func(t *testing.T, packed []byte, size byte) {
		header := append([]byte("SXER\x02\x00\x00\x00"), make([]byte, 16)...)
		header[len(header)-1] = size
		mac := signing.Sign(secret, signing.EtcdRecords, []byte("e"), []byte("n"), header, packed)
		read, err := signing.Open(secret, "e", "n", append(append(header, mac[:]...), packed...),
			100)
		if err == nil && (len(read.Chains) != int(size) || size > 100) {
			t.Errorf("%d bytes are read, want %d", len(read.Chains), size)
		}
	})
}

// Texts of headers are read as they are written, or refused.
func FuzzHeaders(f *testing.F) {
	f.Add(signing.NewChallenge(secret, signing.Nonce{7}, time.Unix(1000, 0)).String())
	f.Add(signing.Nonce{1}.String())
	f.Add(signing.MAC{1}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := signing.ParseChallenge(text); err == nil && c.String() != text {
			t.Errorf("challenge %q is read as %s", text, c)
		}
		if n, err := signing.ParseNonce(text); err == nil && n.String() != text {
			t.Errorf("nonce %q is read as %s", text, n)
		}
		if m, err := signing.ParseMAC(text); err == nil && m.String() != text {
			t.Errorf("signature %q is read as %s", text, m)
		}
		if d, err := signing.ParseDigest(text); err == nil && d.String() != text {
			t.Errorf("digest %q is read as %s", text, d)
		}
	})
}
