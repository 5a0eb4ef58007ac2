//go:build linux

package udp

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// More datagrams come than the buffer holds. Every lost one is counted, both during the loss and when no later
// datagram carries the counter.
func TestKernelDrops(t *testing.T) {
	for _, workers := range []int{1, 3} {
		cfg := testConfig("127.0.0.1:0")
		cfg.Workers = workers
		cfg.ReceiveBufferBytes = 16 << 10
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		const n = 500
		conns := make([]interface{ Write([]byte) (int, error) }, 8)
		for i := range conns {
			conns[i] = dial(t, s.Addrs()[0])
		}
		send := func() {
			for i := range n {
				if _, err := conns[i%len(conns)].Write(make([]byte, 200)); err != nil {
					t.Fatal(err)
				}
			}
		}
		send() // not read yet
		idle := s.Stats()
		if idle.KernelDropped == 0 || idle.Frames != 0 {
			t.Fatalf("%d workers, not running: Stats() = %+v, want drops and no frames", workers, idle)
		}
		for _, k := range s.Sockets() {
			if k.Addr != s.Addrs()[0] || k.KernelDropped > 0 && k.bufferedBytes == 0 || k.bufferedBytes > 2*k.bufferBytes+4096 {
				t.Errorf("%d workers: Sockets() has %+v", workers, k)
			}
		}
		r := start(t, s, nil)
		r.wait(t, n-int(idle.KernelDropped))
		if st := s.Stats(); st.KernelDropped != idle.KernelDropped {
			t.Errorf("%d workers: %d dropped while nothing was sent", workers, st.KernelDropped-idle.KernelDropped)
		}
		r.hold.Lock() // the workers stand in handle; the buffers run over a second time
		send()
		r.hold.Unlock()
		got := len(r.stop(t))
		st := s.Stats()
		if st.Frames != uint64(got) || st.Frames+st.KernelDropped != 2*n || st.KernelDropped <= idle.KernelDropped {
			t.Errorf("%d workers: %d received + %d dropped, want %d in all; %d were handed over", workers, st.Frames, st.KernelDropped, 2*n, got)
		}
	}
}

// The counter beside the data agrees with the one that is asked for.
func TestOverflowMessage(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers, cfg.ReceiveBufferBytes = 1, 4096
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := dial(t, s.Addrs()[0])
	w := s.workers[0]
	k := w.sockets[0]
	for range 100 {
		write(t, c, make([]byte, 1000))
	}
	for { // makes room, so that the next datagram comes in and brings the counter with it
		n, err := w.receive(k)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	before := k.count.drops.total.Load()
	write(t, c, []byte("after"))
	for n := 0; n == 0; {
		if n, err = w.receive(k); err != nil {
			t.Fatal(err)
		}
	}
	carried := k.count.drops.total.Load()
	k.observeDrops()
	asked := k.count.drops.total.Load()
	if before >= carried || carried != asked || asked != 101-k.count.frames.Load() {
		t.Errorf("drops: %d before, %d by SO_RXQ_OVFL, %d by SO_MEMINFO, want the last two to be %d", before, carried, asked, 101-k.count.frames.Load())
	}
}

// What arrives after the end is turned away and counted; what arrived before is handed over.
func TestStopUnderLoad(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.ReceiveBufferBytes = 64 << 10
	s, err := New(cfg)
	r := start(t, s, err)
	c := dial(t, s.Addrs()[0])
	sent := uint64(0)
	for i := range 20000 {
		if i == 10000 {
			r.cancel()
		}
		if _, err := c.Write(make([]byte, 100)); err != nil {
			if errors.Is(err, unix.ECONNREFUSED) {
				break // the sockets are closed: this reports an earlier datagram that is not counted any more
			}
			t.Fatal(err)
		}
		sent++
	}
	got := uint64(len(r.stop(t)))
	st := s.Stats()
	if st.Frames != got || got+st.KernelDropped > sent || got+st.KernelDropped < 10000 {
		t.Errorf("%d sent; %d handed over, Stats() = %+v", sent, got, st)
	}
}

// A receiver that does not return keeps a stopping source no longer than the bound, and the rest is counted.
func TestDrainDeadline(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers, cfg.BatchSize = 1, 1
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.Addrs()[0])
	for range 50 {
		write(t, c, []byte("x"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := uint64(0)
	if err := s.Run(ctx, func(int, *ingest.Batch) { calls++; time.Sleep(drainTime / 4) }); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Frames != calls || st.Frames+st.KernelDropped != 50 || st.KernelDropped == 0 {
		t.Errorf("%d calls, Stats() = %+v, want 50 in all, some of them dropped", calls, st)
	}
}

// With steering "spread" one loud sender reaches every worker. Of 8000 datagrams over 4 workers, a share under 1500
// has a probability below 1e-40 if the kernel picks evenly.
func TestSpread(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers, cfg.Steering = 4, SteerSpread
	s, err := New(cfg)
	r := start(t, s, err)
	c := dial(t, s.Addrs()[0])
	for i := range 8000 {
		write(t, c, []byte("x"))
		if i%100 == 99 {
			r.wait(t, i+1)
		}
	}
	r.stop(t)
	for _, k := range s.Sockets() {
		if k.Frames < 1500 || k.Frames > 2500 {
			t.Errorf("worker %d: %d frames, want about 2000", k.Worker, k.Frames)
		}
	}
}

// Workers run on the CPUs of the settings, and a CPU that there is not is an error that names the setting.
func TestCPUs(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig("127.0.0.1:0")
	cfg.Workers = 3
	for cpu := range uint16(1024) {
		if own.IsSet(int(cpu)) {
			cfg.CPUs = append(cfg.CPUs, cpu)
		}
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan [2]int, 100), make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(worker int, b *ingest.Batch) {
			var now unix.CPUSet
			if err := unix.SchedGetaffinity(0, &now); err != nil || now.Count() != 1 {
				t.Errorf("worker %d has %d CPUs, %v", worker, now.Count(), err)
			}
			for cpu := range 1024 {
				if now.IsSet(cpu) {
					seen <- [2]int{worker, cpu}
				}
			}
		})
	}()
	for range 20 { // to any worker
		write(t, dial(t, s.Addrs()[0]), []byte("x"))
		if got := <-seen; got[1] != int(cfg.CPUs[got[0]%len(cfg.CPUs)]) {
			t.Errorf("worker %d runs on CPU %d of %v", got[0], got[1], cfg.CPUs)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	cfg.CPUs = []uint16{1023}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "udp.cpus: CPU 1023 ") {
		t.Errorf("with CPU 1023: %v", err)
	}
}

// The granted buffer is the kernel's word, and a shortage is said with the remedy.
func TestReceiveBuffer(t *testing.T) {
	cfg := testConfig("127.0.0.1:0")
	cfg.ReceiveBufferBytes = 100 << 10
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, w := range s.workers {
		k := w.sockets[0]
		doubled, err := unix.GetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err != nil || k.granted != doubled/2 || k.granted != cfg.ReceiveBufferBytes {
			t.Errorf("granted %d, kernel has %d (%v), want %d", k.granted, doubled, err, cfg.ReceiveBufferBytes)
		}
	}
	if len(s.Notices()) != 0 {
		t.Errorf("Notices() = %q, want none", s.Notices())
	}
	k := &socket{addr: netip.MustParseAddrPort("127.0.0.1:32766"), granted: 212992}
	if n := bufferNotice(k, 212992); n != "" {
		t.Errorf("a notice about a granted buffer: %s", n)
	}
	n := bufferNotice(k, 16<<20)
	for _, want := range []string{"127.0.0.1:32766", "asked for 16777216", "granted 212992", "net.core.rmem_max=16777216"} {
		if !strings.Contains(n, want) {
			t.Errorf("notice %q does not say %q", n, want)
		}
	}
}

// Control messages are read as far as they are there, whatever length they claim.
func TestParseControl(t *testing.T) {
	type message struct {
		level, typ int32
		data       []byte
	}
	build := func(ms ...message) []byte {
		var words [64]uint64 // aligned
		b := unsafe.Slice((*byte)(unsafe.Pointer(&words)), unsafe.Sizeof(words))
		at := 0
		for _, m := range ms {
			h := (*unix.Cmsghdr)(unsafe.Pointer(&b[at]))
			h.Level, h.Type = m.level, m.typ
			h.SetLen(unix.CmsgLen(len(m.data)))
			copy(b[at+unix.CmsgLen(0):], m.data)
			at += unix.CmsgSpace(len(m.data))
		}
		return b[:at]
	}
	ts := unix.NsecToTimespec(1700000000123456789)
	stamp := message{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, unsafe.Slice((*byte)(unsafe.Pointer(&ts)), unsafe.Sizeof(ts))}
	drops := message{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, binary.NativeEndian.AppendUint32(nil, 4000000000)}
	other := message{unix.SOL_IP, unix.SO_RXQ_OVFL, make([]byte, 13)}
	const ns, lost = 1700000000123456789, 4000000000

	tests := []struct {
		name  string
		b     []byte
		ns    int64
		drops uint32
		has   bool
	}{
		{"none", nil, 0, 0, false},
		{"time", build(stamp), ns, 0, false},
		{"both", build(stamp, drops), ns, lost, true},
		{"other order, one between", build(drops, other, stamp), ns, lost, true},
		{"other level", build(other), 0, 0, false},
		{"short data", build(message{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, make([]byte, 3)}, drops), 0, lost, true},
		{"counter too short", build(message{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, make([]byte, 3)}, stamp), ns, 0, false},
	}
	for _, tt := range tests {
		n, d, has := parseControl(tt.b)
		if n != tt.ns || d != tt.drops || has != tt.has {
			t.Errorf("%s: parseControl(%x) = %d, %d, %v, want %d, %d, %v", tt.name, tt.b, n, d, has, tt.ns, tt.drops, tt.has)
		}
	}
	whole := build(stamp, drops)
	for cut := range whole { // slices with their capacity cut: a read past the end would panic
		if n, d, _ := parseControl(whole[:cut:cut]); n != 0 && n != ns || d != 0 && d != lost {
			t.Errorf("cut at %d: time %d, drops %d", cut, n, d)
		}
	}
	for _, claim := range []int{0, 1, unix.CmsgLen(0) - 1, len(whole) + 1, 1 << 30} {
		b := build(stamp, drops)
		(*unix.Cmsghdr)(unsafe.Pointer(&b[0])).SetLen(claim)
		if n, d, has := parseControl(b); n != 0 || d != 0 || has {
			t.Errorf("a first message that claims %d bytes: %d, %d, %v, want nothing", claim, n, d, has)
		}
	}
}

// Receiving allocates nothing.
func TestReceiveAllocs(t *testing.T) {
	cfg := testConfig("[::1]:0")
	hasIPv6(t)
	cfg.Workers = 1
	cfg.AllowSources, cfg.BatchSize = []string{"::1/128"}, 32
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := dial(t, s.Addrs()[0])
	w := s.workers[0]
	for range 4000 {
		write(t, c, []byte("0123456789"))
	}
	frames := 0
	allocs := testing.AllocsPerRun(200, func() {
		if _, err := w.round(func(_ int, b *ingest.Batch) { frames += len(b.Frames) }); err != nil {
			t.Error(err)
		}
	})
	if st := s.Stats(); allocs != 0 || frames == 0 || st.Frames+st.KernelDropped != 4000 {
		t.Errorf("%v allocations a round, want 0; %d frames, %+v", allocs, frames, st)
	}
}

// A worker does not nap when the last nap filled more than a quarter of some buffer.
func TestMayNap(t *testing.T) {
	const quarter = 16 << 20 * 2 / 768 / 4
	a, b := &socket{granted: 16 << 20}, &socket{granted: 212992}
	w := worker{sockets: []*socket{a, b}}
	for _, tt := range []struct {
		a, b int
		want bool
	}{{0, 0, true}, {quarter, 138, true}, {quarter + 1, 0, false}, {0, 139, false}, {quarter + 1, 139, false}} {
		a.received, b.received = tt.a, tt.b
		if got := w.mayNap(); got != tt.want || a.received+b.received != 0 {
			t.Errorf("mayNap after %d and %d datagrams = %v, want %v; %d are left counted", tt.a, tt.b, got, tt.want, a.received+b.received)
		}
	}
}

// Slots of the ring stay clear of multiples of the page size and hold what was asked.
func TestRing(t *testing.T) {
	for _, size := range []int{64, 65, 1500, 4032, 4096, 8192, 9216, 65535} {
		r := newRing(3, size)
		if r.stride < size || r.stride%64 != 0 || r.stride%4096 == 0 || len(r.data) != 3*r.stride {
			t.Errorf("%d bytes: stride %d, %d in all", size, r.stride, len(r.data))
		}
	}
}
