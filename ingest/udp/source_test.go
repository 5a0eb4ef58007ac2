package udp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// source is the common interface of both implementations.
type source interface {
	ingest.Source
	Addrs() []netip.AddrPort
	Notices() []string
	Sockets() []socketStats
	Inputs() []ingest.Input
	Close() error
}

// implementations are tested by the same cases; they must not differ in what they hand over.
var implementations = []struct {
	name string
	open func(Config) (source, error)
}{
	{"native", func(c Config) (source, error) { return New(c) }},
	{"portable", func(c Config) (source, error) { return newPortable(c) }},
}

func testConfig(listen ...string) Config {
	c := DefaultConfig()
	c.Listen = listen
	c.Workers = 2
	return c
}

// received is one frame with memory of its own.
type received struct {
	ingest.Frame
	worker int
}

// running is a source with a collector of everything it hands over.
type running struct {
	source
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	frames []received
	hold   sync.RWMutex // locked: handle waits
}

func start(t *testing.T, s source, err error) *running {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{source: s, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, r.handle) }()
	t.Cleanup(func() {
		cancel()
		s.Close()
	})
	return r
}

func (r *running) handle(worker int, b *ingest.Batch) {
	r.hold.RLock()
	defer r.hold.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range b.Frames {
		f.Data = slices.Clone(f.Data)
		r.frames = append(r.frames, received{f, worker})
	}
}

// stop ends the run and returns everything that came.
func (r *running) stop(t *testing.T) []received {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	return r.frames
}

// wait polls until n frames came.
func (r *running) wait(t *testing.T, n int) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("%d frames came", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.frames) >= n
	})
}

func dial(t *testing.T, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := dialAddr(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dialAddr(to netip.AddrPort) (*net.UDPConn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
}

func write(t *testing.T, c *net.UDPConn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

func hasIPv6(t *testing.T) {
	t.Helper()
	c, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skipf("this machine has no IPv6 loopback: %v", err)
	}
	c.Close()
}

// Every datagram comes through whole, once, with where it came from and where it went.
func TestReceive(t *testing.T) {
	tests := []struct {
		name, listen string
		to           string // host to send to; the listen address when empty
		src          string
		v6           bool
	}{
		{name: "ipv4", listen: "127.0.0.1:0", src: "127.0.0.1"},
		{name: "ipv6", listen: "[::1]:0", src: "::1", v6: true},
		{name: "ipv4 on a dual socket is unmapped", listen: "[::]:0", to: "127.0.0.1", src: "127.0.0.1", v6: true},
		{name: "ipv6 on a dual socket", listen: "[::]:0", to: "::1", src: "::1", v6: true},
		{name: "ipv4 any", listen: "0.0.0.0:0", to: "127.0.0.1", src: "127.0.0.1"},
	}
	for _, impl := range implementations {
		for _, tt := range tests {
			t.Run(impl.name+"/"+tt.name, func(t *testing.T) {
				if tt.v6 {
					hasIPv6(t)
				}
				s, err := impl.open(testConfig(tt.listen))
				r := start(t, s, err)
				to := r.Addrs()[0]
				if to.Port() == 0 {
					t.Fatalf("Addrs() = %v, want the port that the kernel picked", r.Addrs())
				}
				if tt.to != "" {
					to = netip.AddrPortFrom(netip.MustParseAddr(tt.to), to.Port())
				}
				const n = 1000
				before := time.Now().UnixNano()
				conns := []*net.UDPConn{dial(t, to), dial(t, to), dial(t, to)}
				sent := map[string]netip.AddrPort{}
				var bytes uint64
				for i := range n {
					c := conns[i%len(conns)]
					b := fmt.Appendf(nil, "datagram %d %s", i, strings.Repeat("x", i))
					if i == 7 {
						b = nil // an empty datagram is one
					}
					write(t, c, b)
					src := c.LocalAddr().(*net.UDPAddr).AddrPort()
					sent[string(b)] = netip.AddrPortFrom(src.Addr().Unmap(), src.Port())
					bytes += uint64(len(b))
					if i%100 == 99 {
						r.wait(t, i+1) // the portable twin has a buffer of the system's size
					}
				}
				got := r.stop(t)
				after := time.Now().UnixNano()
				if len(got) != n {
					t.Fatalf("%d frames, want %d", len(got), n)
				}
				for _, f := range got {
					src, ok := sent[string(f.Data)]
					delete(sent, string(f.Data))
					if !ok {
						t.Fatalf("received %q, never sent or twice", f.Data)
					}
					if f.Src != src || f.Src.Addr().String() != tt.src {
						t.Errorf("Src = %v, want %v", f.Src, src)
					}
					if f.DstPort != to.Port() || f.Link != ingest.LinkUDP || f.Length != len(f.Data) || f.Number != 0 {
						t.Errorf("frame %+v, want port %d, link UDP, length %d", f.Frame, to.Port(), len(f.Data))
					}
					// Clocks may be set while a test runs, by little.
					if slack := int64(time.Second); f.Time < before-slack || f.Time > after+slack {
						t.Errorf("Time = %d, want within %d..%d", f.Time, before, after)
					}
				}
				want := ingest.Stats{Frames: n, Bytes: bytes}
				if st := r.Stats(); st != want {
					t.Errorf("Stats() = %+v, want %+v", st, want)
				}
			})
		}
	}
}

// Datagrams longer than the buffer are cut, and say so; one that fits exactly is not.
func TestTruncated(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			cfg := testConfig("127.0.0.1:0")
			cfg.MaxDatagramBytes = 64
			s, err := impl.open(cfg)
			r := start(t, s, err)
			c := dial(t, r.Addrs()[0])
			for _, n := range []int{63, 64, 65, 9000, 65507} {
				write(t, c, make([]byte, n))
			}
			r.wait(t, 5)
			got := r.stop(t)
			want := [][2]int{{63, 63}, {64, 64}, {64, 65}, {64, 9000}, {64, 65507}}
			for i, f := range got {
				if have := [2]int{len(f.Data), f.Length}; have != want[i] {
					t.Errorf("datagram %d: %d bytes of %d, want %v", i, have[0], have[1], want[i])
				}
			}
			if st := r.Stats(); st.Truncated != 3 || st.Frames != 5 || st.Bytes != 63+4*64 {
				t.Errorf("Stats() = %+v, want 5 frames, 3 truncated, %d bytes", st, 63+4*64)
			}
		})
	}
}

// Several addresses are received at once, each with its port, and not heard twice.
func TestSeveralAddresses(t *testing.T) {
	hasIPv6(t)
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			s, err := impl.open(testConfig("127.0.0.1:0", "[::1]:0", "127.0.0.1:0"))
			r := start(t, s, err)
			if len(r.Addrs()) != 3 {
				t.Fatalf("Addrs() = %v, want 3", r.Addrs())
			}
			for i, a := range r.Addrs() {
				c := dial(t, a)
				for range 10 + i {
					write(t, c, []byte{byte(i)})
				}
			}
			r.wait(t, 33)
			for _, f := range r.stop(t) {
				if want := r.Addrs()[f.Data[0]].Port(); f.DstPort != want {
					t.Errorf("DstPort = %d, want %d", f.DstPort, want)
				}
			}
			perAddr := map[netip.AddrPort]uint64{}
			for _, k := range r.Sockets() {
				perAddr[k.Addr] += k.Frames
			}
			for i, a := range r.Addrs() {
				if perAddr[a] != uint64(10+i) {
					t.Errorf("%v: %d frames, want %d", a, perAddr[a], 10+i)
				}
			}
			inputs := r.Inputs()
			if len(inputs) != 3 {
				t.Fatalf("Inputs() = %v, want one an address", inputs)
			}
			for i, in := range inputs {
				want := ingest.Input{Name: r.Addrs()[i].String(), Frames: uint64(10 + i)}
				if in.Problem = ""; in != want { // the buffer may be smaller than asked for
					t.Errorf("input %d is %+v, want %+v", i, in, want)
				}
			}
		})
	}
}

// Only admitted sources are handed over; the others are counted.
func TestAllowSources(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			cfg := testConfig("127.0.0.1:0")
			cfg.Workers = 1
			cfg.AllowSources = []string{"127.0.0.0/31", "127.9.0.0/16", "2001:db8::1"}
			s, err := impl.open(cfg)
			r := start(t, s, err)
			for src, ok := range map[string]byte{"127.0.0.1": 1, "127.0.0.2": 0, "127.9.8.7": 1, "127.10.0.1": 0} {
				from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(src), 0))
				c, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(r.Addrs()[0]))
				if err != nil {
					t.Skipf("%s is no address of this machine's loopback: %v", src, err)
				}
				defer c.Close()
				for range 5 {
					write(t, c, []byte{ok})
				}
			}
			testkit.Until(t, "all datagrams are counted", func() bool { st := r.Stats(); return st.Frames+st.Refused >= 20 })
			for _, f := range r.stop(t) {
				if f.Data[0] != 1 {
					t.Errorf("handed over a datagram from %v", f.Src)
				}
			}
			if st := r.Stats(); st.Frames != 10 || st.Refused != 10 || st.Bytes != 10 {
				t.Errorf("Stats() = %+v, want 10 frames, 10 refused, 10 bytes", st)
			}
		})
	}
}

// What was sent before the end is handed over, even if it was not read yet.
func TestDrain(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			cfg := testConfig("127.0.0.1:0")
			cfg.Workers = 3
			s, err := impl.open(cfg)
			r := start(t, s, err)
			r.hold.Lock()
			for range 5 {
				c := dial(t, r.Addrs()[0])
				for range 20 {
					write(t, c, []byte("late"))
				}
			}
			r.cancel()
			r.hold.Unlock()
			if got := r.stop(t); len(got) != 100 {
				t.Errorf("%d frames, want 100", len(got))
			}
			if st := r.Stats(); st.Frames != 100 || st.KernelDropped != 0 {
				t.Errorf("Stats() = %+v, want 100 frames, none dropped", st)
			}
		})
	}
}

// Starting and stopping leaves nothing behind: no goroutine, no port.
func TestShutdown(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			cfg := testConfig("127.0.0.1:0")
			for range 20 {
				s, err := impl.open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				cfg.Listen = []string{s.Addrs()[0].String()} // the same port, each time
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- s.Run(ctx, func(int, *ingest.Batch) {}) }()
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if err := s.Run(ctx, nil); err == nil {
					t.Error("a second Run gave no error")
				}
				if err := s.Close(); err != nil {
					t.Errorf("Close after Run: %v", err)
				}
			}
			testkit.Until(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// A source that never ran releases its port.
func TestCloseWithoutRun(t *testing.T) {
	for _, impl := range implementations {
		cfg := testConfig("127.0.0.1:0")
		for range 2 {
			s, err := impl.open(cfg)
			if err != nil {
				t.Fatalf("%s: %v", impl.name, err)
			}
			cfg.Listen = []string{s.Addrs()[0].String()}
			if err := s.Close(); err != nil {
				t.Errorf("%s: Close: %v", impl.name, err)
			}
		}
	}
}

// An address that cannot be had is named, all of them at once, and nothing stays open.
func TestOpenErrors(t *testing.T) {
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			free, err := impl.open(testConfig("127.0.0.1:0"))
			if err != nil {
				t.Fatal(err)
			}
			addr := free.Addrs()[0].String()
			// Another collector of the same user must not share the port in silence.
			if s, err := impl.open(testConfig(addr)); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("open %s twice: %v, %v, want %v", addr, s, err, syscall.EADDRINUSE)
			}
			free.Close()

			s, err := impl.open(testConfig(addr, taken.LocalAddr().String(), "203.0.113.77:32766"))
			if err == nil {
				s.Close()
				t.Fatal("no error for an address in use")
			}
			for _, want := range []error{syscall.EADDRINUSE, syscall.EADDRNOTAVAIL} {
				if !errors.Is(err, want) {
					t.Errorf("error %q, want it to be %v", err, want)
				}
			}
			for _, want := range []string{"listen on " + taken.LocalAddr().String(), "listen on 203.0.113.77:32766"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if s, err = impl.open(testConfig(addr)); err != nil {
				t.Fatalf("%s is still taken after New failed: %v", addr, err)
			}
			s.Close()
		})
	}
}

// One exporter's datagrams stay in order and with one worker when the kernel hashes.
func TestOrder(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers = 4
	s, err := New(cfg)
	r := start(t, s, err)
	c := dial(t, r.Addrs()[0])
	for i := range uint32(500) {
		write(t, c, binary.BigEndian.AppendUint32(nil, i))
		if i%100 == 99 {
			r.wait(t, int(i+1))
		}
	}
	got := r.stop(t)
	for i, f := range got {
		if n := binary.BigEndian.Uint32(f.Data); n != uint32(i) || f.worker != got[0].worker {
			t.Fatalf("frame %d is datagram %d, by worker %d; the first was by worker %d", i, n, f.worker, got[0].worker)
		}
		if i > 0 && f.Time < got[i-1].Time-int64(time.Second) {
			t.Errorf("frame %d: time goes back by %v", i, time.Duration(got[i-1].Time-f.Time))
		}
	}
}
