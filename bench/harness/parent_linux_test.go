package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestKilledBench holds that a program ends with the bench that asks it, however that ends.
func TestKilledBench(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "HOPSCOPE_FOREIGN=bench", "HOPSCOPE_PID="+pid)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the program runs", func() bool { _, err := os.Stat(pid); return err == nil })
	b, err := os.ReadFile(pid)
	n, nerr := strconv.Atoi(string(b))
	if err != nil || nerr != nil {
		t.Fatal(err, nerr)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	p, err := os.FindProcess(n)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the program has ended", func() bool { return gone(p) })
}
