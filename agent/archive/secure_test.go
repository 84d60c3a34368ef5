package archive_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sextant/agent/archive/archivetest"
	"sextant/config"
)

// certificate writes a certificate for the servers' address, which is its own authority, and its
// key.
func certificate(t *testing.T, name string) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{archivetest.Loopback()}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	write := func(file, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), file)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("certificate.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", private)
}

// With certificates on both sides the node is known to etcd and etcd to the node; others are
// refused, and files that are no use are named.
func TestCertificates(t *testing.T) {
	c, key := certificate(t, "both")
	stranger, strangerKey := certificate(t, "stranger")
	server := archivetest.Start(t,
		config.Etcd{TLS: config.TLSFiles{CA: c, Certificate: c, Key: key}},
		"--cert-file", c, "--key-file", key, "--trusted-ca-file", c, "--client-cert-auth")
	must(t, open(t, server.Etcd()).Put(t.Context(), web, "edge1", noise(1, 5)))
	for name, test := range map[string]struct {
		tls  config.TLSFiles
		says string
	}{
		"another authority": {config.TLSFiles{CA: stranger, Certificate: c, Key: key}, ""},
		"a stranger's certificate": {config.TLSFiles{CA: c, Certificate: stranger,
			Key: strangerKey}, ""},
		"no certificate": {config.TLSFiles{CA: c}, ""},
		"an authority without file": {config.TLSFiles{CA: "/does/not/exist"},
			"read tls.ca: open /does/not/exist"},
		"a key as authority": {config.TLSFiles{CA: key}, "holds no certificate"},
		"a key of another": {config.TLSFiles{CA: c, Certificate: c, Key: strangerKey},
			"read tls.certificate and tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := server.Etcd()
			etcd.TLS = test.tls
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := open(t, etcd).Ping(ctx); err == nil || !strings.Contains(err.Error(),
				test.says) {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
}

// A user who may use the prefix alone is enough. A wrong password is an error, and one that was put
// right is used the next time.
func TestUser(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	admin := raw(t, server.Etcd())
	for _, err := range []error{
		second(admin.UserAdd(t.Context(), "root", "root")),
		second(admin.UserGrantRole(t.Context(), "root", "root")),
		second(admin.UserAdd(t.Context(), "edge", "right")),
		second(admin.RoleAdd(t.Context(), "edges")),
		second(admin.RoleGrantPermission(t.Context(), "edges", "/sextant/", "/sextant0",
			clientv3.PermissionType(clientv3.PermReadWrite))),
		second(admin.UserGrantRole(t.Context(), "edge", "edges")),
		second(admin.AuthEnable(t.Context())),
	} {
		must(t, err)
	}
	etcd := server.Etcd()
	if open(t, etcd).Ping(t.Context()) == nil {
		t.Error("etcd answers who has no password")
	}
	etcd.Username, etcd.PasswordFile = "edge", filepath.Join(t.TempDir(), "password")
	a := open(t, etcd)
	for text, says := range map[string]string{"wrong\n": "invalid user ID or password",
		" \n": "is empty"} {
		must(t, os.WriteFile(etcd.PasswordFile, []byte(text), 0o600))
		if err := a.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with password %q: %v", text, err)
		}
	}
	must(t, os.WriteFile(etcd.PasswordFile, []byte("right\n"), 0o600))
	must(t, a.Ping(t.Context()))
	must(t, a.Put(t.Context(), web, "edge1", noise(1, 5)))
	if got := contents(t, a, web); len(got) != 1 {
		t.Errorf("%d records are read", len(got))
	}
	must(t, a.Delete(t.Context(), web, "edge1"))
}

func second[T any](_ T, err error) error { return err }
