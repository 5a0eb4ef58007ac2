package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The same datagrams, received by a socket, read from an interface in both ways and from a capture, are the same reports, hops and
// flows to the bit: over the loopback interface from a socket of this machine, and over a pair of virtual ones as frames.
func TestInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	payloads := plain.Payloads(t, "../../decode/testdata/fabric-report05.pcap")
	t.Run("loopback", func(t *testing.T) {
		from, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // not connected: the answer that nothing listens is no error
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		sameByAllWays(t, payloads, afpacket.Loopback, netip.MustParseAddrPort(from.LocalAddr().String()), netip.MustParseAddr("127.0.0.1"), func(b []byte, to netip.AddrPort) {
			if _, err := from.WriteToUDPAddrPort(b, to); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("veth", func(t *testing.T) {
		testkit.IP(t, "address add 10.0.0.1/24 dev host0")
		host, err := net.InterfaceByName("host0")
		if err != nil {
			t.Fatal(err)
		}
		peer, err := net.InterfaceByName("net0")
		if err != nil {
			t.Fatal(err)
		}
		sender := testkit.NewFrameSender(t, peer.Index, func() uint64 { return 0 })
		from := netip.MustParseAddrPort("10.0.0.2:40000")
		sameByAllWays(t, payloads, host.Name, from, netip.MustParseAddr("10.0.0.1"), func(b []byte, to netip.AddrPort) {
			frame := append(append(append([]byte{}, host.HardwareAddr...), peer.HardwareAddr...), 8, 0)
			sender.Send(append(frame, datagramOf(from, to, b)...), false)
		})
	})
}

// sameByAllWays sends payloads to collectors that receive them in each way, and compares what they have of them.
func sameByAllWays(t *testing.T, payloads [][]byte, name string, from netip.AddrPort, host netip.Addr, send func(payload []byte, to netip.AddrPort)) {
	var want string
	for _, way := range []string{"socket", "afpacket", "afxdp", "pcap"} {
		to := netip.AddrPortFrom(host, netip.MustParseAddrPort(testkit.FreeAddr(t)).Port())
		cfg := defaultConfig()
		cfg.Web.Listen, cfg.Window, cfg.Shards, cfg.UDP.Workers = "", time.Hour, 1, 1
		cfg.Ports = []string{to.String() + " reports"}
		ports := []string{fmt.Sprint(to.Port(), " reports")}
		switch way {
		case "afpacket":
			cfg.Ports, cfg.AFPacket.Interfaces, cfg.AFPacket.Ports = nil, []string{name}, ports
		case "afxdp":
			cfg.Ports, cfg.AFXDP.Interfaces, cfg.AFXDP.Ports = nil, []string{name}, ports
		case "pcap":
			cfg.PCAP.Files = []string{captureOf(t, from, netip.AddrPortFrom(to.Addr(), 32766), payloads)}
		}
		cfg.listen()
		if _, err := examine(&cfg, nil, true); err != nil {
			t.Fatal(err)
		}
		r, err := openLive(&cfg, collector.Options{Seed: 1, Ports: cfg.kinds()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for i, b := range payloads {
			if way == "pcap" {
				i = len(payloads) - 1
			} else {
				send(b, to)
			}
			testkit.Until(t, "the datagram was received", func() bool { return r.Summary(1, 1).Ledger.Received > uint64(i) })
		}
		steered := counter(t, r.Registry(), "hopscope_afxdp_steered_total")
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if all := float64(len(payloads)); way == "afxdp" && steered != all || way != "afxdp" && steered != 0 {
			t.Errorf("%s: %v of %v datagrams were steered", way, steered, all)
		}
		s := r.Summary(1000, 1000)
		if s.Reports == 0 || len(s.Hops) == 0 || s.Ledger.Received != uint64(len(payloads)) {
			t.Fatalf("%s: %d reports of %d datagrams, %d hops", way, s.Reports, len(payloads), len(s.Hops))
		}
		text, err := json.Marshal([]any{s.Reports, s.Malformed, s.ByKind, s.MalformedReasons, s.FlowCount, s.Flows, s.HopCount, s.Hops, s.Ledger.Received})
		if err != nil {
			t.Fatal(err)
		}
		if want != "" && string(text) != want {
			t.Errorf("by %s\n%s, by the socket\n%s", way, text, want)
		}
		want = string(text)
	}
}

// counter is the sum of a counter over its labels, 0 without it.
func counter(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// datagramOf is a packet of IPv4.
func datagramOf(from, to netip.AddrPort, payload []byte) []byte {
	ip := packet.AppendIPv4(nil, &packet.IPv4{TTL: 64, Proto: packet.ProtoUDP, Src: from.Addr().As4(), Dst: to.Addr().As4()}, 8+len(payload))
	return append(packet.AppendUDP(ip, from.Port(), to.Port(), len(payload)), payload...)
}

// captureOf writes a capture of datagrams from an address to another one.
func captureOf(t *testing.T, from, to netip.AddrPort, payloads [][]byte) string {
	t.Helper()
	le := binary.LittleEndian
	words := func(b []byte, list ...uint32) []byte {
		for _, n := range list {
			b = le.AppendUint32(b, n)
		}
		return b
	}
	b := words(nil, 0xa1b23c4d, 4<<16|2, 0, 0, 1<<16, uint32(ingest.LinkRaw))
	for i, payload := range payloads {
		ip := datagramOf(from, to, payload)
		b = append(words(b, 1, uint32(i), uint32(len(ip)), uint32(len(ip))), ip...)
	}
	return writeFile(t, string(b))
}

// A port that a socket has is not read from an interface that sees the same datagrams.
func TestInterfacesCheck(t *testing.T) {
	cfg, err := readConfig(writeFile(t, "afpacket: {interfaces: [nope0]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := examine(&cfg, nil, true); err != nil || !strings.Contains(fmt.Sprint(w), "nope0 is no interface of this machine") {
		t.Errorf("%v, %v", w, err)
	}
	for text, want := range map[string]string{
		"afpacket: {interfaces: [eth0]}\n":                               "",
		"ports: []\nafpacket: {interfaces: [lo], ports: [6343]}\n":       "",
		"afpacket: {interfaces: [lo]}\n":                                 "afpacket.interfaces[0]: datagrams to 127.0.0.1:32766 come to lo and to the socket of this address",
		"ports: [\"[::]:6343\"]\nafpacket: {interfaces: [eth0]}\n":       "afpacket.interfaces[0]: datagrams to [::]:6343 come to eth0",
		"afpacket: {interfaces: [eth0], ports: [\"[::]:7\"]}\n":          `afpacket.ports[0]: "[::]:7" is not PORT [TYPE]`,
		"afpacket: {interfaces: [eth0], ports: [7 otlp-grpc]}\n":         `afpacket.ports[0]: "7 otlp-grpc" is not PORT [TYPE]`,
		"afpacket: {interfaces: [eth0], ports: [7 netflow]}\n":           "is none of auto",
		"afpacket: {interfaces: [eth0, eth0]}\n":                         "interfaces: eth0 is listed twice",
		"afxdp: {interfaces: [eth0]}\n":                                  "",
		"ports: []\nafxdp: {interfaces: [lo], ports: [6343]}\n":          "",
		"afxdp: {interfaces: [lo]}\n":                                    "name its port in afxdp.ports",
		"afxdp: {interfaces: [eth0], ports: [7 otlp-grpc]}\n":            `afxdp.ports[0]: "7 otlp-grpc" is not PORT [TYPE]`,
		"afxdp: {interfaces: [eth0]}\nafpacket: {interfaces: [eth0]}\n":  "afxdp.interfaces[0]: eth0 is one of afpacket.interfaces",
		"afxdp: {interfaces: [eth0], mode: generic, copy: never}\n":      "copy: never requires a driver",
		"afxdp: {interfaces: [eth0], umem_bytes: 1}\n":                   "umem_bytes",
		"afpacket: {interfaces: [eth0], addresses: [switch]}\n":          `addresses: "switch" is neither a prefix`,
		"afpacket: {interfaces: [eth0], ports: [6343], ring_bytes: 1}\n": "ring_bytes",
	} {
		cfg, err := readConfig(writeFile(t, text))
		_, err = examine(&cfg, err, true)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
