package udp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

// Datagrams carry the purpose of their port. A spare port that another program has is left out, and named. A requested
// port that is taken is an error, as are spare ports that are all taken.
func TestPorts(t *testing.T) {
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	has := taken.LocalAddr().(*net.UDPAddr).AddrPort()
	free := netip.MustParseAddrPort("127.0.0.1:0")
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			cfg := testConfig("127.0.0.1:0")
			cfg.Ports = []Port{{Addr: free, Only: ingest.SFlow}, {Addr: has, Spare: true}, {Addr: free, Only: ingest.Reports, Spare: true}}
			s, err := impl.open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			addrs := s.Addrs()
			if len(addrs) != 3 {
				t.Fatalf("addresses %v, want three", addrs)
			}
			notices := s.(ingest.Notifier).Notices()
			if n := notices[len(notices)-1]; !strings.Contains(n, has.String()) || !strings.Contains(n, "setting ports") {
				t.Errorf("the last of notices %q does not name %v", notices, has)
			}
			in := s.(ingest.Describer).Inputs()
			if len(in) != 4 || in[3].Name != has.String() || in[3].Problem == "" || strings.Contains(in[0].Problem, has.String()) {
				t.Errorf("inputs %+v", in)
			}
			ctx, stop := context.WithCancel(t.Context())
			got, ended := make(chan ingest.Frame, 8), make(chan error, 1)
			go func() {
				ended <- s.Run(ctx, func(_ int, b *ingest.Batch) {
					for _, f := range b.Frames {
						got <- ingest.Frame{DstPort: f.DstPort, Only: f.Only}
					}
				})
			}()
			for i, a := range addrs {
				c, err := net.Dial("udp", a.String())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = c.Write([]byte{1})
				c.Close()
				want := ingest.Frame{DstPort: a.Port(), Only: []ingest.Kind{ingest.Anything, ingest.SFlow, ingest.Reports}[i]}
				if f := <-got; f.DstPort != want.DstPort || f.Only != want.Only {
					t.Errorf("at %v: frame of port %d for %d, want %d for %d", a, f.DstPort, f.Only, want.DstPort, want.Only)
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}

			cfg.Ports[1].Spare = false
			if s, err := impl.open(cfg); err == nil {
				t.Errorf("%v: no error for a port that was asked for", s)
			}
			cfg.Listen, cfg.Ports = nil, []Port{{Addr: has, Spare: true}}
			if _, err := impl.open(cfg); err == nil || !strings.Contains(err.Error(), has.String()) {
				t.Errorf("all spare ports are taken: error %v", err)
			}
		})
	}
	if n, _ := (&Config{Workers: 3, Listen: []string{"a"}, Ports: []Port{{}, {}}}).Readers(); n != 9 {
		t.Errorf("%d readers of three addresses, want 9", n)
	}
	if s, err := (Config{}).Open(); s != nil || err != nil {
		t.Errorf("no address: Open() = %v, %v", s, err)
	}
	if c := slices.Clone((&Config{Listen: []string{"[::1]:5"}, Ports: []Port{{Addr: free}}}).ports()); len(c) != 2 || c[0].Addr.Port() != 5 {
		t.Errorf("ports %v", c)
	}
}
