package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// files are what the tests pack, by name, with their modes.
var files = map[string]os.FileMode{
	"usr/bin/sextant": 0o755, "usr/share/doc/sextant/copyright": 0o644,
	"usr/share/man/man8/sextant.8.gz": 0o644, "etc/default/sextant": 0o644,
	"usr/share/sextant/node.schema.json": 0o644,
}

// stageFiles lays files out, each with its name as text.
func stageFiles(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, mode := range files {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "etc/sextant"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..") // where the scriptlets are, as seen by scripts/release.sh
	return folder
}

// pack writes a release file, as the command does.
func pack(t *testing.T, form string, args ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "packed")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	args = append([]string{"--version", "1.2+abc", "--out", file}, args...)
	for i, arg := range args {
		if strings.Contains(arg, "=") {
			args = append(args[:i:i], append([]string{form}, args[i:]...)...)
			break
		}
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	return file
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func requireTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is needed; scripts/deps.sh test fetches it", name)
		}
	}
}

// readTar is what a tar file holds: bodies by name; folders end with a slash.
func readTar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	held := map[string]string{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return held
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%s is of user %d and %v", header.Name, header.Uid, header.ModTime)
		}
		held[header.Name] = string(body)
	}
}

func TestArchive(t *testing.T) {
	packed, err := os.ReadFile(pack(t, "tar", "arm64="+stageFiles(t)))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	held := readTar(t, z)
	const root = "sextant-1.2+abc-linux-arm64/"
	for name := range files {
		if held[root+name] != name {
			t.Errorf("%s holds %q", name, held[root+name])
		}
	}
	if got := held[root+extension]; got != "ID=_any\nARCHITECTURE=arm64\n" {
		t.Errorf("the extension matches %q", got)
	}
}

// Package manager and library share nothing but the format.
func TestRPM(t *testing.T) {
	requireTools(t, "rpm", "gpg")
	key := newKey(t)
	file := pack(t, "rpm", "--key", "release@example.org", "amd64="+stageFiles(t))
	got := output(t, "rpm", "-qp", "--nosignature", "--queryformat",
		"%{NAME} %{VERSION} %{ARCH}\n[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME}\n]", file)
	want := `sextant 1.2+abc x86_64
/etc/default/sextant -rw-r--r-- root
/etc/sextant drwxr-xr-x root
/usr/bin/sextant -rwxr-xr-x root
/usr/share/doc/sextant drwxr-xr-x root
/usr/share/doc/sextant/copyright -rw-r--r-- root
/usr/share/man/man8/sextant.8.gz -rw-r--r-- root
/usr/share/sextant drwxr-xr-x root
/usr/share/sextant/node.schema.json -rw-r--r-- root
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("package (-want +got):\n%s", diff)
	}
	if scripts := output(t, "rpm", "-qp", "--nosignature", "--scripts", file); !strings.Contains(
		scripts, "sextant unload -f") {
		t.Errorf("scriptlets:\n%s", scripts)
	}
	keys := t.TempDir()
	output(t, "rpm", "--dbpath", keys, "--import", key)
	if said := output(t, "rpm", "--dbpath", keys, "-K", file); !strings.HasSuffix(said,
		"digests signatures OK\n") {
		t.Errorf("rpm -K: %s", said)
	}
	root := t.TempDir()
	if os.Geteuid() == 0 {
		output(t, "rpm", "--root", root, "--nodeps", "--noscripts", "--nosignature", "-i", file)
		output(t, "rpm", "--root", root, "-V", "sextant")
	}
}

// newKey makes a key of gpg for release@example.org, and returns the file with its public part.
func newKey(t *testing.T) (public string) {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // its socket's name must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		exec.Command("gpgconf", "--kill", "all").Run()
		os.RemoveAll(home)
	})
	output(t, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "release@example.org",
		"rsa2048", "sign", "never")
	public = filepath.Join(home, "public.asc")
	output(t, "gpg", "--batch", "--armor", "--output", public, "--export", "release@example.org")
	return public
}

// descriptor is how OCI names a blob.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ OS, Architecture string }
	Annotations       map[string]string
}

// An image is read by its specification alone: each blob has the digest that names it.
func TestImage(t *testing.T) {
	folder := stageFiles(t)
	packed, err := os.ReadFile(pack(t, "image", "amd64="+folder, "arm64="+folder))
	if err != nil {
		t.Fatal(err)
	}
	held := readTar(t, bytes.NewReader(packed))
	var layout struct{ Manifests []descriptor }
	read(t, held["index.json"], &layout)
	if len(layout.Manifests) != 1 ||
		layout.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2-abc" {
		t.Fatalf("the layout names %+v", layout.Manifests)
	}
	var index struct{ Manifests []descriptor }
	read(t, blob(t, held, layout.Manifests[0]), &index)
	var architectures []string
	for _, d := range index.Manifests {
		architectures = append(architectures, d.Platform.OS+"/"+d.Platform.Architecture)
		checkImage(t, held, d, "/usr/bin/sextant")
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, architectures); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
}

// An image with the program for Kubernetes starts that one.
func TestKubernetesImage(t *testing.T) {
	folder := stageFiles(t)
	program := filepath.Join(folder, kubernetes)
	if err := os.WriteFile(program, []byte(kubernetes), 0o755); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(pack(t, "image", "amd64="+folder))
	if err != nil {
		t.Fatal(err)
	}
	held := readTar(t, bytes.NewReader(packed))
	var layout, index struct{ Manifests []descriptor }
	read(t, held["index.json"], &layout)
	read(t, blob(t, held, layout.Manifests[0]), &index)
	inLayer := checkImage(t, held, index.Manifests[0], "/"+kubernetes)
	if inLayer[kubernetes] != kubernetes {
		t.Error("no program for Kubernetes in the layer")
	}
}

// checkImage returns what an image's layer holds.
func checkImage(t *testing.T, held map[string]string, d descriptor,
	starts string) map[string]string {
	t.Helper()
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read(t, blob(t, held, d), &manifest)
	var image struct {
		Architecture string
		Config       struct{ Entrypoint []string }
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	read(t, blob(t, held, manifest.Config), &image)
	if image.Architecture != d.Platform.Architecture || len(manifest.Layers) != 1 ||
		!cmp.Equal(image.Config.Entrypoint, []string{starts}) {
		t.Fatalf("image %+v with %d layers", image, len(manifest.Layers))
	}
	z, err := gzip.NewReader(strings.NewReader(blob(t, held, manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(image.RootFS.DiffIDs, []string{digest(string(layer))}) {
		t.Errorf("the layer is %s, not %v", digest(string(layer)), image.RootFS.DiffIDs)
	}
	inLayer := readTar(t, bytes.NewReader(layer))
	if inLayer["usr/bin/sextant"] != "usr/bin/sextant" {
		t.Error("no binary in the layer")
	}
	if _, there := inLayer["usr/share/man/man8/sextant.8.gz"]; there {
		t.Error("man pages in the layer")
	}
	return inLayer
}

func digest(blob string) string {
	sum := sha256.Sum256([]byte(blob))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blob(t *testing.T, held map[string]string, d descriptor) string {
	t.Helper()
	body := held["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if digest(body) != d.Digest || len(body) != d.Size {
		t.Fatalf("blob of %d bytes with digest %s, want %d bytes, %s", len(body), digest(body),
			d.Size, d.Digest)
	}
	return body
}

func read(t *testing.T, text string, value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

func TestPackedTwice(t *testing.T) {
	folder := stageFiles(t)
	for _, form := range []string{"rpm", "tar", "image"} {
		first, err := os.ReadFile(pack(t, form, "amd64="+folder))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(pack(t, form, "amd64="+folder))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: the second time gives other bytes", form)
		}
	}
}

func TestFaultsOfCommandLine(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	for name, args := range map[string][]string{
		"nothing":          {},
		"no version":       {"--out", "x", "tar", "amd64=x"},
		"no architecture":  {"--version", "1", "--out", "x", "tar", "x"},
		"unknown form":     {"--version", "1", "--out", "x", "zip", "amd64=x"},
		"too many folders": {"--version", "1", "--out", "x", "rpm", "amd64=x", "arm64=y"},
		"missing folder":   {"--version", "1", "--out", "x", "tar", "amd64=missing"},
	} {
		if err := run(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
