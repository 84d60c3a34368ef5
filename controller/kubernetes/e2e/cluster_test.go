package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"sextant/linux"
)

// A Cluster is an API server with its etcd.
type Cluster struct {
	Config  *rest.Config // of an administrator, for the test itself
	Address string       // host and port, in its network namespace
	Dir     string
	Server  int // process of the API server
	t       testing.TB
}

// kubePrograms returns the directory of programs, and skips the test where one has not been built.
func kubePrograms(t testing.TB, names ...string) string {
	t.Helper()
	dir := os.Getenv("SEXTANT_KUBE_PROGRAMS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("root has no cache directory with %v: %v", names, err)
		}
		dir = filepath.Join(cache, "sextant", "kube")
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skip(name + " is not in " + dir + ", the cache of root under sudo: " +
				"make kube-programs builds it, in about 15 minutes")
		}
	}
	return dir
}

// Users are who the API server knows, besides the administrator: users by their tokens.
type Users map[string]string

// startCluster runs an API server and etcd in a network namespace until the test ends. Its loopback
// interface is up.
func startCluster(t testing.TB, ns *linux.Netns, users Users) *Cluster {
	t.Helper()
	programs, dir := kubePrograms(t, "kube-apiserver", "etcd"), t.TempDir()
	c := &Cluster{Address: "127.0.0.1:6443", Dir: dir, t: t}
	key := writeKey(t, dir)
	tokens := "admin,admin,admin,system:masters\n"
	for token, user := range users {
		tokens += fmt.Sprintf("%s,%s,%s,\"%s\"\n", token, user, user, groupsOf(user))
	}
	must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "audit.yaml"), []byte(auditOf(users)), 0o600))
	c.run(ns, filepath.Join(programs, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"),
		"--unsafe-no-fsync", "--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380",
		"--log-level=error", "--quota-backend-bytes=8589934592")
	c.Server = c.run(ns, filepath.Join(programs, "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--secure-port=6443", "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
		"--cert-dir="+filepath.Join(dir, "certificates"), "--service-account-issuer=https://test",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.64.0.0/12,fd00:10:96::/108", "--authorization-mode=RBAC",
		"--token-auth-file="+filepath.Join(dir, "tokens"),
		"--disable-admission-plugins=ServiceAccount", "--profiling=false",
		"--audit-policy-file="+filepath.Join(dir, "audit.yaml"), "--audit-log-path="+c.audit(),
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000")
	c.Config = &rest.Config{Host: "https://" + c.Address, BearerToken: "admin", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Dial: dialerIn(ns)}
	c.await()
	return c
}

// groupsOf are those of a service account.
func groupsOf(user string) string {
	if parts := strings.Split(user, ":"); len(parts) == 4 {
		return "system:serviceaccounts,system:serviceaccounts:" + parts[2]
	}
	return "system:authenticated"
}

// dialerIn connects from inside a namespace.
func dialerIn(ns *linux.Netns) func(context.Context, string, string) (net.Conn, error) {
	if ns == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = ns.Do(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// Kubeconfig writes a file by which a program in the namespace of the API server, or wherever the
// address leads there, is a user.
func (c *Cluster) Kubeconfig(name, address, token string) string {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + address,
		InsecureSkipTLSVerify: true}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test",
		Namespace: "default"}
	config.CurrentContext = "test"
	file := filepath.Join(c.Dir, name+".kubeconfig")
	must(c.t, clientcmd.WriteToFile(*config, file))
	return file
}

// run starts a program that ends with the test, and returns its process.
func (c *Cluster) run(ns *linux.Netns, program string, args ...string) (pid int) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.Dir, filepath.Base(program)+".log"))
	must(c.t, err)
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, c.Dir
	must(c.t, linux.Start(cmd, ns, nil))
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if c.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			c.t.Logf("%s: %s", filepath.Base(program), text[max(0, len(text)-2000):])
		}
	})
	return cmd.Process.Pid
}

// await waits until the API server is ready.
func (c *Cluster) await() {
	c.t.Helper()
	client, err := rest.HTTPClientFor(c.Config)
	must(c.t, err)
	deadline := time.Now().Add(90 * time.Second)
	for {
		response, err := client.Get("https://" + c.Address + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == 200 {
				return
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the API server is not ready: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// InstallCRDs installs the definitions in files and directories.
func (c *Cluster) InstallCRDs(paths ...string) {
	c.t.Helper()
	_, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: paths,
		ErrorIfPathMissing: true, PollInterval: 50 * time.Millisecond})
	must(c.t, err)
}

// GatewayCRDs are files with the definitions of the Gateway API, standard channel.
func GatewayCRDs(t testing.TB) (list []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/gateway-api").Output()
	must(t, err)
	for _, kind := range []string{"gatewayclasses", "gateways", "tcproutes", "udproutes",
		"referencegrants"} {
		list = append(list, filepath.Join(strings.TrimSpace(string(out)), "config", "crd",
			"standard", "gateway.networking.k8s.io_"+kind+".yaml"))
	}
	return list
}

func writeKey(t testing.TB, dir string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	file := filepath.Join(dir, "service-account.pem")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file
}
