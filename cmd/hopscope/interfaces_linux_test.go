package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The same datagrams, received by a socket and read from the loopback interface, are the same reports, hops and flows to the bit.
func TestInterfaces(t *testing.T) {
	payloads := plain.Payloads(t, "../../decode/testdata/fabric-report05.pcap")
	var want string
	for _, ring := range []bool{false, true} {
		to := netip.MustParseAddrPort(testkit.FreeAddr(t))
		cfg := defaultConfig()
		cfg.Web.Listen, cfg.Window, cfg.Shards, cfg.UDP.Workers = "", time.Hour, 1, 1
		cfg.Ports = []string{to.String() + " reports"}
		if ring {
			cfg.Ports, cfg.AFPacket.Interfaces, cfg.AFPacket.Ports = nil, []string{loopbackInterface}, []string{fmt.Sprint(to.Port(), " reports")}
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
		from, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // not connected: the answer that nothing listens is no error
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		for i, b := range payloads {
			if _, err := from.WriteToUDPAddrPort(b, to); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "the datagram was received", func() bool { return r.Summary(1, 1).Ledger.Received > uint64(i) })
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		s := r.Summary(1000, 1000)
		if s.Reports == 0 || len(s.Hops) == 0 || s.Ledger.Received != uint64(len(payloads)) {
			t.Fatalf("ring %t: %d reports of %d datagrams, %d hops", ring, s.Reports, len(payloads), len(s.Hops))
		}
		text, err := json.Marshal([]any{s.Reports, s.Malformed, s.ByKind, s.MalformedReasons, s.FlowCount, s.Flows, s.HopCount, s.Hops, s.Ledger.Received})
		if err != nil {
			t.Fatal(err)
		}
		if ring && string(text) != want {
			t.Errorf("by the ring\n%s, by the socket\n%s", text, want)
		}
		want = string(text)
	}
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
