package rate

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/internal/testkit"
)

// inNetwork runs f on a thread in a network of its own, whose loopback interface is up.
func inNetwork(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	done := make(chan error, 1)
	go func() { // whose thread ends with it, and so the network
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = bringUpLoopback()
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Datagrams of the frames arrive as the load wrote them, each from the address of its exporter. In later turns of the ring they
// have further sequence numbers.
func TestFrameSender(t *testing.T) {
	for _, tt := range []struct {
		name string
		load func() (traffic.Datagrams, error)
		seq  sequenceField
	}{
		{"report", func() (traffic.Datagrams, error) { return traffic.New(traffic.DefaultConfig()) }, payloads["report"]},
		{"netflow5", func() (traffic.Datagrams, error) { return newNetflow5(3), nil }, sequenceField{16, 1<<32 - 1}},
		{"sflow", func() (traffic.Datagrams, error) { return newFlowLoad(0, 3), nil }, payloads["sflow"]},
		{"ipfix", func() (traffic.Datagrams, error) { return newFlowLoad(ipfix.V10, 3), nil }, payloads["ipfix"]},
		{"netflow9", func() (traffic.Datagrams, error) { return newFlowLoad(ipfix.V9, 3), nil }, payloads["netflow9"]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load, err := tt.load()
			if err != nil {
				t.Fatal(err)
			}
			want, err := tt.load()
			if err != nil {
				t.Fatal(err)
			}
			inNetwork(t, func() { sendsAsWritten(t, load, want, tt.seq) })
		})
	}
}

func sendsAsWritten(t *testing.T, load, want traffic.Datagrams, seq sequenceField) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	s, err := newFrameSender("lo", load, 1000)
	if err != nil {
		t.Error(err)
		return
	}
	defer s.close()
	if err := s.fill(c.LocalAddr().(*net.UDPAddr).AddrPort(), load, seq); err != nil {
		t.Error(err)
		return
	}
	if err := c.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Error(err)
	}
	const again = 100 // datagrams of the second turn
	total := s.slots + again
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer atomic.StoreUint64(&s.control.limit, 0) // no more is read
		number := func(b []byte) uint32 { return binary.BigEndian.Uint32(b[seq.at:]) & seq.mask }
		buf, expected := make([]byte, 2048), make([]byte, 2048)
		for i := range total {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				t.Errorf("datagram %d: %v", i, err)
				return
			}
			s.received.Add(1)
			e := i % want.Exporters()
			b := want.NextFrom(e, expected)
			same := string(b) == string(buf[:n])
			if i >= s.slots {
				same = number(b) == number(buf[:n])
			}
			if addr := netip.AddrFrom4([4]byte{198, 18, 0, byte(e + 1)}); from.Addr() != addr || !same {
				t.Errorf("datagram %d from %v: %x, want %x from %v", i, from, buf[:n], b, addr)
				return
			}
		}
	}()
	r, err := s.send(sending{period: testkit.Patience, count: uint64(total), window: 16}, nil)
	if err != nil || r.frames != uint64(total) {
		t.Errorf("%+v, %v, want %d frames", r, err, total)
	}
	<-read
}

// A sender keeps its rate, and sends no more than it was asked for.
func TestFrameSenderRate(t *testing.T) {
	inNetwork(t, func() {
		load := newNetflow5(2)
		s, err := newFrameSender("lo", load, 1000)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.close()
		if err := s.fill(netip.MustParseAddrPort("127.0.0.1:9"), load, sequenceField{16, 1<<32 - 1}); err != nil {
			t.Error(err)
			return
		}
		for range 2 {
			r, err := s.send(sending{rate: 20_000, period: 100 * time.Millisecond}, nil)
			if most := 20_000*r.elapsed.Seconds() + frameBurst; err != nil || r.frames == 0 || float64(r.frames) > most {
				t.Errorf("%+v, %v, want at most %.0f frames", r, err, most)
			}
		}
	})
}

func BenchmarkFrameSender(b *testing.B) {
	inNetwork(b, func() {
		g, err := traffic.New(traffic.DefaultConfig())
		if err != nil {
			b.Error(err)
			return
		}
		s, err := newFrameSender("lo", g, turns(10_000))
		if err != nil {
			b.Error(err)
			return
		}
		defer s.close()
		if err := s.fill(netip.MustParseAddrPort("127.0.0.1:9"), g, sequenceField{0, 1<<22 - 1}); err != nil {
			b.Error(err)
			return
		}
		b.ResetTimer()
		if _, err := s.send(sending{period: time.Hour, count: uint64(b.N)}, nil); err != nil {
			b.Error(err)
		}
	})
}
