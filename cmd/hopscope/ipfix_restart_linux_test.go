package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A collector that is killed between templates and their data reads the data when it runs again: 10,000 templates of one exporter. Data that comes before
// its template waits for it, and memory stays within what the program needs for so much.
func TestIPFIXKilled(t *testing.T) {
	const sets, each, most = 100, 100, 10_000
	state := filepath.Join(t.TempDir(), "collector.state")
	settings := settingsFile(t, fmt.Sprintf("window: 250ms\nstate_file: %q\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n", state))
	c := start(t, settings)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // templates belong to its port
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	send := func(domain, seq uint32, set uint16, body func(b []byte) []byte) {
		m := ipfix.Message{Version: ipfix.V10, Domain: domain, Seq: seq, Time: 1_790_000_000}
		b := ipfix.AppendMessage(nil, &m, func(b []byte) []byte { return ipfix.AppendSet(b, set, 0, body) })
		if _, err := socket.WriteToUDPAddrPort(b, c.to); err != nil {
			t.Fatal(err)
		}
	}
	template := func(id int) *decode.Template {
		return &decode.Template{Version: ipfix.V10, ID: uint16(256 + id), Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 2, Length: 4}}}
	}
	record := func(b []byte) []byte { return append(b, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 1) }
	waiting, templates := "hopscope_ipfix_waiting_sets", "hopscope_ipfix_templates"
	send(0, 0, 256, record)
	c.until("data waits for its template", func() bool { return c.metric(waiting) == 1 })
	for i := range sets {
		send(uint32(i), 0, 2, func(b []byte) []byte {
			for k := range each {
				b = ipfix.AppendTemplate(b, template(k))
			}
			return b
		})
		c.until("templates", func() bool { return c.metric(templates) == float64((i+1)*each) })
	}
	c.until("the data is read", func() bool { return c.metric(waiting) == 0 })
	c.until("templates are kept", func() bool {
		b, _ := os.ReadFile(filepath.Join(filepath.Dir(state), "ipfix.templates"))
		list, err := exporters.ReadTemplates(b)
		return err == nil && len(list) == most
	})
	c.cmd.Process.Kill()
	<-c.ended
	c.cmd.Wait()

	c = start(t, settings)
	c.until("templates of the run before", func() bool { return c.metric(templates) == most })
	for i := range sets {
		for k := range each {
			send(uint32(i), uint32(k), uint16(256+k), record)
		}
		c.until("reports", func() bool {
			return c.metric(`hopscope_decode_reports_total{format="ipfix",kind="sample"}`) == float64((i+1)*each)
		})
	}
	if n := c.metric(waiting); n != 0 {
		t.Errorf("%v sets wait for templates that the run before had", n)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _ := strconv.Atoi(strings.Fields(rest)[0])
	bound := 200 << 10
	if testkit.Race { // which keeps what it knows of each word beside it
		bound *= 5
	}
	if t.Logf("%d MB at most", kb>>10); kb > bound {
		t.Errorf("%d MB with %d templates", kb>>10, most)
	}
}
