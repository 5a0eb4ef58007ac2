package agent

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/probe"
)

// One collector of three is gone: the others have the reports about their probes, and what the gone one did not get is
// counted.
func TestThirdOfCollectors(t *testing.T) {
	namespace(t)
	cfg, first := testConfig(t)
	second, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	gone := testkit.FreeAddr(t) // its port answers that nothing is there
	cfg.Collectors = append(cfg.Collectors, gone, second.LocalAddr().String())
	startFabric(t, probe.INT21, nil)
	var logged logLines
	a, err := Open(cfg, logged.logger())
	if err != nil {
		t.Fatal(err)
	}
	p := &probe.Plan{Epoch: 3, Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80}
	for k := range 24 {
		p.Probes = append(p.Probes, probe.Probe{ID: fmt.Sprint("p", k), Route: []int{1, 2}, Interval: 200 * time.Millisecond, Agent: cfg.Name, Collector: cfg.Name})
	}
	if _, err := a.Adopt(p, "test"); err != nil {
		t.Fatal(err)
	}
	stop := runAgent(t, a)
	wait(t, "report that went nowhere", func() bool { return a.Stats().ReportErrors > 5 })
	stop()
	s := a.Stats()
	dec := demux.New(profileOf(t, "auto"))
	buf, datagrams := make([]byte, 9216), uint64(0)
	for k, c := range []*net.UDPConn{first, second} {
		probes := map[uint16]int{}
		const end = "all that came was there when the agent had ended"
		if _, err := c.WriteTo([]byte(end), c.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		for {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if string(buf[:n]) == end {
				break
			}
			datagrams++
			var b decode.Batch
			dec.Datagram(&b, decode.AddrFrom(netip.MustParseAddr("127.0.0.1")), buf[:n], 0)
			for _, r := range b.Reports {
				probes[r.Flow.SrcPort]++
			}
		}
		if len(probes) == 0 || len(probes) == len(p.Probes) {
			t.Errorf("collector %d has reports about %v", k, probes)
		}
		for port, n := range probes {
			// A busy machine may have sent more rounds than have come back.
			if rounds := int(s.Received) / len(p.Probes); n < rounds/2 {
				t.Errorf("collector %d has %d reports about the probe of port %d, of %d rounds that came back", k, n, port, rounds)
			}
		}
	}
	// What the kernel took for the one that is gone came nowhere, and half of it is answered by an error. What is under way is not lost.
	if s.Datagrams <= datagrams || s.ReportErrors == 0 || s.KernelDropped > 0 || s.Lost > int64(s.Sent-s.Received) {
		t.Errorf("%d datagrams came, %+v", datagrams, s)
	}
}
