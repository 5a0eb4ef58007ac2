package rate

import (
	"io"
	"net/http"
	"net/http/httptest"
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

// A collector whose first one was not measured has no ratio to it, rather than 0.
func TestPeersShowWithoutFirst(t *testing.T) {
	o, err := parsePeers("a sflow 127.0.0.1:1 x", "b sflow 127.0.0.1:1 x")
	if err != nil {
		t.Fatal(err)
	}
	o.floods = nil
	r := PeersResult{settings: o, rounds: []result{{Receiver: " sflow b", Round: 1, LossFree: trial{Sent: 1000, Received: 1000, CPU: 0.5}}}}
	var b strings.Builder
	if err := r.Show(&b); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Fields(b.String()), "none") {
		t.Errorf("there is a ratio:\n%s", b.String())
	}
}

// A page that is not there states no count.
func TestPeersOwnCount(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "# TYPE lost counter\nlost{socket=\"1\"} 3\nlost{socket=\"2\"} 4\nother 9\n")
	}))
	defer server.Close()
	c := ownCount{page: strings.TrimPrefix(server.URL, "http://") + "/metrics", metric: "lost", unit: "datagrams"}
	if got, err := c.count(""); err != nil || got != "7 datagrams" {
		t.Errorf("%q, %v", got, err)
	}
	c.page += "s"
	if got, err := c.count(""); err == nil {
		t.Errorf("%q of a page that is not there", got)
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
