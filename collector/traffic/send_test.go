package traffic

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// listen returns a socket with a large buffer.
func listen(t *testing.T, addr string) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	if err != nil {
		t.Skipf("cannot listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func testGenerator(t *testing.T, exporters int) *Generator {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Exporters = exporters
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What is sent arrives, in order, every exporter from a port of its own, by each way of sending.
func TestSend(t *testing.T) {
	tests := []struct {
		name, addr string
		cfg        SendConfig
		exporters  int
		ports      int
	}{
		{name: "ipv4", addr: "127.0.0.1:0", exporters: 3, ports: 3},
		{name: "ipv6", addr: "[::1]:0", exporters: 3, ports: 3},
		{name: "paced", addr: "127.0.0.1:0", cfg: SendConfig{Rate: 20000}, exporters: 2, ports: 2},
		{name: "one socket", addr: "127.0.0.1:0", cfg: SendConfig{sockets: 1}, exporters: 4, ports: 1},
		{name: "one by one", addr: "127.0.0.1:0", cfg: SendConfig{burst: 1}, exporters: 1, ports: 1},
		{name: "segmented", addr: "127.0.0.1:0", cfg: SendConfig{segment: true, burst: 20}, exporters: 2, ports: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.segment && runtime.GOOS != "linux" {
				t.Skip("only Linux has UDP_SEGMENT")
			}
			c, to := listen(t, tt.addr)
			const n = 150 // fits the smallest default buffer
			tt.cfg.To, tt.cfg.Count = to, n
			g := testGenerator(t, tt.exporters)
			r, err := Send(t.Context(), tt.cfg, g)
			if err != nil {
				t.Fatal(err)
			}
			if r.Sent != n || r.Bytes != n*200 || r.refused != 0 || r.Elapsed <= 0 || r.Rate() <= 0 {
				t.Errorf("Send: %+v, want %d datagrams", r, n)
			}
			ports := map[uint16]bool{}
			portOf := map[uint32]uint16{}
			seq := map[uint32]uint32{}
			buf := make([]byte, 2048)
			for range n {
				m, src, err := c.ReadFromUDPAddrPort(buf)
				if err != nil {
					t.Fatal(err)
				}
				p := parse(t, buf[:m], 5)
				ports[src.Port()] = true
				if old, ok := portOf[p.node]; ok && old != src.Port() {
					t.Errorf("node %d sends from ports %d and %d", p.node, old, src.Port())
				}
				portOf[p.node] = src.Port()
				if p.seq != seq[p.node] {
					t.Errorf("node %d: sequence %d, want %d", p.node, p.seq, seq[p.node])
				}
				seq[p.node]++
			}
			if len(ports) != tt.ports {
				t.Errorf("%d source ports, want %d", len(ports), tt.ports)
			}
		})
	}
}

// A paced sender is never ahead of its rate, keeps to its duration, and stops when asked.
func TestSendLimits(t *testing.T) {
	_, to := listen(t, "127.0.0.1:0")
	const rate, duration = 5000, 50 * time.Millisecond
	testkit.Until(t, "the sender has time to send", func() bool {
		r, err := Send(t.Context(), SendConfig{To: to, Rate: rate, Duration: duration}, testGenerator(t, 1))
		if most := uint64(rate*r.Elapsed.Seconds()) + maxBurst; err != nil || r.Sent > most || r.Elapsed < duration {
			t.Errorf("Send: %+v, %v, want at most %d in at least %v", r, err, most, duration)
		}
		return r.Sent > 0
	})
	testkit.Until(t, "the sender has time to send as fast as possible", func() bool {
		r, err := Send(t.Context(), SendConfig{To: to, Duration: duration}, testGenerator(t, 1))
		if err != nil || r.Elapsed < duration {
			t.Errorf("Send as fast as possible: %+v, %v, want some in %v", r, err, duration)
		}
		return r.Sent > 0
	})
	for _, rate := range []float64{0, 3} { // 3: asleep when the end comes
		ctx, cancel := context.WithCancel(t.Context())
		g := &begun{Generator: testGenerator(t, 1), first: func() { time.AfterFunc(20*time.Millisecond, cancel) }}
		if r, err := Send(ctx, SendConfig{To: to, Rate: rate}, g); err != nil || r.Sent == 0 {
			t.Errorf("Send at rate %v until its context ended: %+v, %v", rate, r, err)
		}
	}
}

// begun calls first when the first datagram is made.
type begun struct {
	*Generator
	once  sync.Once
	first func()
}

func (b *begun) NextFrom(exporter int, buf []byte) []byte {
	b.once.Do(b.first)
	return b.Generator.NextFrom(exporter, buf)
}

// A port without a listener is reported, not hidden.
func TestSendRefused(t *testing.T) {
	c, to := listen(t, "127.0.0.1:0")
	c.Close()
	r, err := Send(t.Context(), SendConfig{To: to, Count: 100}, testGenerator(t, 1))
	if err != nil || r.Sent != 100 || r.refused == 0 && runtime.GOOS == "linux" {
		t.Errorf("Send to a closed port: %+v, %v, want 100 sent, some refused", r, err)
	}
}

// Load leaves this machine under no circumstances.
func TestSendRefusesOthers(t *testing.T) {
	for _, to := range []string{"192.0.2.1:32766", "[2001:db8::1]:32766", "0.0.0.0:32766", "[::]:1", "[::ffff:192.0.2.1]:5", "127.0.0.1:0"} {
		r, err := Send(t.Context(), SendConfig{To: netip.MustParseAddrPort(to), Count: 1}, testGenerator(t, 1))
		if err == nil || r.Sent != 0 {
			t.Errorf("Send to %s: %+v, no error", to, r)
		}
	}
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for _, cfg := range []SendConfig{{Rate: -1}, {Rate: 2e9}, {sockets: 65}, {sockets: -1}, {burst: 65}, {burst: -1}} {
		cfg.To, cfg.Count = to, 1
		if _, err := Send(t.Context(), cfg, testGenerator(t, 1)); err == nil {
			t.Errorf("Send with %+v gave no error", cfg)
		}
	}
}
