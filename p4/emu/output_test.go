package emu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// testClock jumps forward when a goroutine sleeps.
type testClock struct {
	now   time.Time
	stall time.Duration // added to the sleep number stallAt
	at    int
	count int
}

func (c *testClock) Now() time.Time { return c.now }

func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	if c.count++; c.count == c.at {
		c.now = c.now.Add(c.stall)
	}
	return context.Cause(ctx)
}

func listen(t *testing.T) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Datagrams arrive over real sockets as Run emits them, each from its exporter's address.
func TestPlaySendsWhatRunEmits(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Probes, cfg.PacketRate, cfg.MaxPacketBytes = demoProbes(), 2000, 400
	want := map[string]int{}
	const until = 100 * time.Millisecond
	mustNew(t, cfg, 3).Run(until, func(d Datagram) { want[d.From.Addr().String()+string(d.Payload)]++ })

	reports, to := listen(t)
	probes, probesTo := listen(t)
	received := make(chan string, 4096)
	for _, c := range []*net.UDPConn{reports, probes} {
		go func() {
			for b := make([]byte, 1<<16); ; {
				k, from, err := c.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				received <- from.Addr().String() + string(b[:k])
			}
		}()
	}
	n, clock := mustNew(t, cfg, 3), &testClock{now: time.Unix(1, 0)}
	stats, err := n.Play(t.Context(), PlayConfig{Reports: to, Probes: probesTo, Speed: 1, Until: until, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if passed := clock.now.Sub(time.Unix(1, 0)); passed < until || passed > until+2*playStep {
		t.Errorf("%v of virtual time took %v", until, passed)
	}
	if stats.Failed != 0 || stats.Refused != 0 || stats.Datagrams < 100 {
		t.Errorf("%+v", stats)
	}
	for range stats.Datagrams {
		key := <-received // on the loopback interface nothing is lost while the buffer has room
		if want[key]--; want[key] < 0 {
			t.Fatalf("%x was not emitted by Run", key)
		}
	}
	for k, c := range want {
		if c != 0 {
			t.Errorf("%d datagrams like %x are missing", c, k)
		}
	}
}

// Time in which the machine was suspended is not made up for beyond a second.
func TestPlaySlips(t *testing.T) {
	_, to := listen(t)
	cfg := DefaultConfig()
	cfg.PacketRate = 100
	n, clock := mustNew(t, cfg, 1), &testClock{stall: time.Hour, at: 10}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stats, err := n.Play(ctx, PlayConfig{Reports: to, Speed: 2, Until: 3 * time.Second, Clock: clock})
	if err != nil || stats.Slipped < time.Hour-2*time.Second || stats.Slipped > time.Hour {
		t.Errorf("slipped %v, %v", stats.Slipped, err)
	}
	cancel()
	before := n.Now()
	if _, err := n.Play(ctx, PlayConfig{Reports: to, Speed: 1, Clock: clock}); err != nil || n.Now() != before {
		t.Errorf("Play with an ended context: %v, at %v", err, n.Now())
	}
}

func TestPlayWithoutListener(t *testing.T) {
	c, to := listen(t)
	c.Close()
	n := mustNew(t, DefaultConfig(), 1)
	stats, err := n.Play(t.Context(), PlayConfig{Reports: to, Until: 100 * time.Millisecond})
	if err != nil || stats.Refused == 0 || stats.Failed != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestPlayRefuses(t *testing.T) {
	loop := netip.MustParseAddrPort("127.0.0.1:9")
	for _, tt := range []struct {
		edit func(*Config, *PlayConfig)
		want string
	}{
		{func(_ *Config, p *PlayConfig) { p.Reports = netip.MustParseAddrPort("192.0.2.1:9") }, "cannot send elsewhere"},
		{func(_ *Config, p *PlayConfig) { p.Reports = netip.AddrPort{} }, "cannot send elsewhere"},
		{func(_ *Config, p *PlayConfig) { p.Probes = netip.MustParseAddrPort("192.0.2.1:9") }, "cannot send elsewhere"},
		{func(c *Config, _ *PlayConfig) { c.Exporters = netip.MustParseAddr("10.0.0.1") }, "exporters begin at 10.0.0.1"},
		{func(_ *Config, p *PlayConfig) { p.Speed = -1 }, "speed -1"},
	} {
		cfg, play := DefaultConfig(), PlayConfig{Reports: loop, Until: time.Second}
		tt.edit(&cfg, &play)
		if _, err := mustNew(t, cfg, 1).Play(t.Context(), play); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Play: %v, want %q", err, tt.want)
		}
	}
}

func TestRecordingRepeatsWithNewNumbers(t *testing.T) {
	for _, d := range []Dialect{md21, md10, local05} {
		cfg := DefaultConfig()
		cfg.Dialect, cfg.HardwareIDs, cfg.ReportsPerDatagram, cfg.FirstSequence = d, 2, 2, 1<<22-100
		cfg.Probes = demoProbes()
		r, err := Record(mustNew(t, cfg, 5), 3000)
		if err != nil {
			t.Fatal(err)
		}
		// Every subsystem counts on without a gap, over three passes.
		type subsystem struct {
			node uint32
			hw   uint8
		}
		next := map[subsystem]uint32{}
		bytes, probes := 0, 0
		n := mustNew(t, cfg, 5)
		for range 3 {
			for i := range r.Len() {
				dg := r.At(i)
				bytes += len(dg.Payload)
				if dg.Port == cfg.ProbePort {
					probes++
				}
				reports := decodeStrictly(t, n, dg, 5)
				if reports[0].Format != decode.TelemetryReport {
					continue
				}
				k := subsystem{reports[0].NodeID, reports[0].HWID}
				want, seen := next[k]
				if seen && reports[0].Seq != want {
					t.Fatalf("%v: %v has sequence number %d, want %d", d, k, reports[0].Seq, want)
				}
				next[k] = reports[0].Seq + 1
				if reports[0].SeqBits == 22 {
					next[k] &= 1<<22 - 1
				}
			}
			r.Renumber()
		}
		if r.Len() != 3000 || bytes != 3*r.Bytes() || probes == 0 || len(next) < 10 {
			t.Errorf("%d datagrams, %d bytes of 3 x %d, %d probes, %d subsystems", r.Len(), bytes, r.Bytes(), probes, len(next))
		}
	}
	// Numbers stay unique when datagrams are late, the first ones too.
	cfg := DefaultConfig()
	for i := range 8 {
		name := fmt.Sprintf("edge-%d-%d", i/2, i%2)
		cfg.Script = append(cfg.Script, Fault{Kind: reorderReports, For: time.Hour, Node: name, Value: 0.5})
	}
	n := mustNew(t, cfg, 6)
	r, err := Record(n, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]uint32]bool{}
	for range 3 {
		for i := range r.Len() {
			report := decodeStrictly(t, n, r.At(i), 6)[0]
			if k := [2]uint32{report.NodeID, report.Seq}; seen[k] {
				t.Fatalf("node %d sends number %d twice", k[0], k[1])
			} else {
				seen[k] = true
			}
		}
		r.Renumber()
	}
	cfg = DefaultConfig()
	cfg.Flows = 0
	if _, err := Record(mustNew(t, cfg, 1), 1); err == nil || !strings.Contains(err.Error(), "0 of 1 datagrams") {
		t.Errorf("Record of a silent network: %v", err)
	}
}

// A pcap file is read back by another implementation, checksums included, and its frames decode as the datagrams do.
func TestPcap(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Probes, cfg.InnerBytes = demoProbes(), 5 // odd lengths with report 1.0
	cfg.Dialect = md10
	n := mustNew(t, cfg, 3)
	var file bytes.Buffer
	collector := netip.MustParseAddr("127.0.0.1")
	w, err := newPcapWriter(&file, collector, cfg.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	var sent []Datagram
	n.Run(300*time.Millisecond, func(d Datagram) {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
		d.Payload = bytes.Clone(d.Payload)
		sent = append(sent, d)
	})
	r, err := pcapgo.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	dec := demux.New(profile(t, "auto"))
	for i, d := range sent {
		data, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		if !info.Timestamp.Equal(cfg.Epoch.Add(d.At)) || info.Length != len(data) {
			t.Fatalf("frame %d: %v, want %v", i, info, cfg.Epoch.Add(d.At))
		}
		checkPacket(t, data[ethLen:], len(data)-ethLen)
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok || uint16(u.DstPort) != d.Port || !bytes.Equal(u.Payload, d.Payload) {
			t.Fatalf("frame %d: %v", i, p)
		}
		if ip := p.NetworkLayer().NetworkFlow(); ip.Src().String() != d.From.Addr().String() || ip.Dst().String() != "127.0.0.1" {
			t.Fatalf("frame %d: %v, from %v", i, ip, d.From)
		}
		var b decode.Batch
		if !d.probe && (dec.Frame(&b, 1, data, len(data), 0) != 1 || b.Reports[0].Error() != nil || b.Reports[0].Exporter != decode.AddrFrom(d.From.Addr())) {
			t.Fatalf("frame %d: %+v", i, b.Reports)
		}
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) || len(sent) < 500 {
		t.Errorf("after %d frames: %v", len(sent), err)
	}
	if _, err := newPcapWriter(&file, netip.MustParseAddr("::1"), cfg.Epoch); err == nil {
		t.Error("NewPcapWriter took an IPv6 address")
	}
}
