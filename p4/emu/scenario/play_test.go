package scenario

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
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
	cfg := emu.DefaultConfig()
	cfg.Probes, cfg.PacketRate, cfg.MaxPacketBytes = demoProbes(), 2000, 400
	want := map[string]int{}
	const until = 100 * time.Millisecond
	built(t, cfg, 3).Run(until, func(d emu.Datagram) { want[d.From.Addr().String()+string(d.Payload)]++ })

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
	n, clock := built(t, cfg, 3), &testClock{now: time.Unix(1, 0)}
	stats, err := Play(t.Context(), n, PlayConfig{Reports: to, Probes: probesTo, Speed: 1, Until: until, clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if passed := clock.now.Sub(time.Unix(1, 0)); passed < until || passed > until+2*playStep {
		t.Errorf("%v of virtual time took %v", until, passed)
	}
	if stats.failed != 0 || stats.refused != 0 || stats.Datagrams < 100 {
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
	cfg := emu.DefaultConfig()
	cfg.PacketRate = 100
	n, clock := built(t, cfg, 1), &testClock{stall: time.Hour, at: 10}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stats, err := Play(ctx, n, PlayConfig{Reports: to, Speed: 2, Until: 3 * time.Second, clock: clock})
	if err != nil || stats.slipped < time.Hour-2*time.Second || stats.slipped > time.Hour {
		t.Errorf("slipped %v, %v", stats.slipped, err)
	}
	cancel()
	before := n.Now()
	if _, err := Play(ctx, n, PlayConfig{Reports: to, Speed: 1, clock: clock}); err != nil || n.Now() != before {
		t.Errorf("Play with an ended context: %v, at %v", err, n.Now())
	}
}

func TestPlayWithoutListener(t *testing.T) {
	c, to := listen(t)
	c.Close()
	n := built(t, emu.DefaultConfig(), 1)
	stats, err := Play(t.Context(), n, PlayConfig{Reports: to, Until: 100 * time.Millisecond})
	if err != nil || stats.refused == 0 || stats.failed != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestPlayRefuses(t *testing.T) {
	loop := netip.MustParseAddrPort("127.0.0.1:9")
	for _, tt := range []struct {
		edit func(*emu.Config, *PlayConfig)
		want string
	}{
		{func(_ *emu.Config, p *PlayConfig) { p.Reports = netip.MustParseAddrPort("192.0.2.1:9") }, "cannot send elsewhere"},
		{func(_ *emu.Config, p *PlayConfig) { p.Reports = netip.AddrPort{} }, "cannot send elsewhere"},
		{func(_ *emu.Config, p *PlayConfig) { p.Probes = netip.MustParseAddrPort("192.0.2.1:9") }, "cannot send elsewhere"},
		{func(c *emu.Config, _ *PlayConfig) { c.Exporters = netip.MustParseAddr("10.0.0.1") }, "exporters begin at 10.0.0.1"},
		{func(_ *emu.Config, p *PlayConfig) { p.Speed = -1 }, "speed -1"},
	} {
		cfg, play := emu.DefaultConfig(), PlayConfig{Reports: loop, Until: time.Second}
		tt.edit(&cfg, &play)
		if _, err := Play(t.Context(), built(t, cfg, 1), play); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Play: %v, want %q", err, tt.want)
		}
	}
}
