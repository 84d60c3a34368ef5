package linuxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sextant/linux"
)

// BIRD starts the router BIRD with a configuration in a network namespace, until the end of the
// test. The function that it returns asks it, as birdc does; until it runs, the answer is an error.
func BIRD(t testing.TB, ns *linux.Netns, configuration string) (ask func(string) string) {
	t.Helper()
	program, err := exec.LookPath("bird")
	if err != nil {
		program = "/usr/sbin/bird"
	}
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "bird.conf"), filepath.Join(dir, "bird.ctl")
	if err := os.WriteFile(file, []byte(configuration), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-f", "-c", file, "-s", socket, "-P", filepath.Join(dir, "pid"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := linux.Start(cmd, ns, nil); err != nil {
		t.Fatalf("start BIRD: %v; it is in the Debian package bird2", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return func(question string) string {
		answer, _ := exec.Command("birdc", "-s", socket, question).CombinedOutput()
		return string(answer)
	}
}
