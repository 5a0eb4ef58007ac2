package rate

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parsePeers(args ...string) (*Peers, error) {
	var o Peers
	o.Flags(pflag.NewFlagSet("peers", pflag.ContinueOnError))
	return &o, o.Check(args)
}

func TestPeersArguments(t *testing.T) {
	o, err := parsePeers("a sflow 127.0.0.1:6343 prog -x 1", "b ipfix 127.0.0.1:4739 other")
	if err != nil || len(o.list) != 2 || o.list[0].command != "prog -x 1" || o.list[1].to.Port() != 4739 {
		t.Errorf("%+v, %v", o.list, err)
	}
	for _, wrong := range []string{"", "a sflow 127.0.0.1:6343", "a sflow nowhere prog", "a sflow [::1]:6343 prog", "a nothing 127.0.0.1:6343 prog"} {
		if _, err := parsePeers(wrong); err == nil {
			t.Errorf("%q gave no error", wrong)
		}
	}
}

// Ratios are those of one round, to the first collector of the payload.
func TestPeersShow(t *testing.T) {
	o, err := parsePeers("a sflow 127.0.0.1:1 x", "b sflow 127.0.0.1:1 x", "a ipfix 127.0.0.1:1 x")
	if err != nil {
		t.Fatal(err)
	}
	r := PeersResult{settings: o}
	for i := range 3 {
		speed := float64(i + 1) // of the machine
		for _, x := range []result{{Receiver: " sflow a", Round: i + 1, LossFree: trial{Sent: 1000 * speed, Received: 1000, CPU: 0.5}, Memory: 7e6}, {Receiver: " sflow b", Round: i + 1, LossFree: trial{Sent: 100 * speed}, Limited: true}, {Receiver: " ipfix a", Round: i + 1, LossFree: trial{Sent: 5}}} {
			x.Floods = []trial{{Sent: 4000, Received: 3000}}
			r.rounds = append(r.rounds, x)
		}
	}
	var b strings.Builder
	if err := r.Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sflow          a             2000  receiver            1.0              500000           7                 4000         3000", "sflow          b              200    sender           10.0", "ipfix          a                5"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
}

// A process counts with those that it started.
func TestFamily(t *testing.T) {
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	if list := family(c.Process.Pid); !slices.Equal(list, []int{c.Process.Pid}) {
		t.Errorf("family = %v, want the process alone", list)
	}
	own, err := resident(os.Getpid())
	child, errChild := resident(c.Process.Pid)
	if err != nil || errChild != nil || own <= child || child <= 0 {
		t.Errorf("%.0f and %.0f bytes, %v, %v", own, child, err, errChild)
	}
}
