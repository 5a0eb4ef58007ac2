package afpacket

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// isolated runs the calling test again in a process with a network of its own, in which host0 and net0 are joined. It
// reports whether this is that process.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv("AFPACKET_TEST") == t.Name() {
		quiet := "/proc/sys/net/ipv6/conf/all/disable_ipv6" // its multicast has the next header 0
		if err := os.WriteFile(quiet, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, line := range []string{"link set lo up", "link add name host0 type veth peer name net0", "link set host0 up", "link set net0 up"} {
			ip(t, line)
		}
		return true
	}
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "AFPACKET_TEST="+t.Name())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := child.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in a network namespace, which needs CAP_SYS_ADMIN (root, or unshare --user --map-root-user --net): %v\n%s", err, out)
	}
	return false
}

// ip runs the command ip.
func ip(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s (.ci/namespaces.sh installs iproute2)", line, err, out)
	}
}

// sender sends frames out of an interface. The kernel has room for a thousand frames in transit, so the sender waits
// for those of the reader now and then.
type sender struct {
	t     *testing.T
	fd    int
	to    *reader
	taken uint64 // by the reader before
	sent  uint64 // that the reader takes
}

func newSender(t *testing.T, name string, to *reader) *sender {
	t.Helper()
	d, err := lookUp(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: d.index}); err != nil {
		t.Fatal(err)
	}
	return &sender{t: t, fd: fd, to: to, taken: to.taken()}
}

func (s *sender) send(frame []byte) {
	s.t.Helper()
	defer func() {
		if s.sent++; s.sent%100 == 0 {
			testkit.Until(s.t, "the ring had what was sent", func() bool { return s.to.taken()-s.taken >= s.sent })
		}
	}()
	for {
		_, err := unix.Write(s.fd, frame)
		if err == unix.ENOBUFS { // the queue of the interface is full for a moment
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
}

// datagram is a frame of Ethernet with tags and a datagram of UDP, whose payload begins with a number.
func datagram(srcPort, dstPort uint16, number uint32, payload int, tags ...uint16) []byte {
	b := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1}
	for _, tag := range tags {
		b = binary.BigEndian.AppendUint16(b, 0x8100)
		b = binary.BigEndian.AppendUint16(b, tag)
	}
	b = append(b, 8, 0)
	return append(b, ipv4(srcPort, dstPort, number, payload)...)
}

// ipv4 is a datagram in IPv4.
func ipv4(srcPort, dstPort uint16, number uint32, payload int) []byte {
	b := make([]byte, 28+payload)
	b[0], b[8], b[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], uint16(number))
	copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	checksum(b)
	binary.BigEndian.PutUint16(b[20:], srcPort)
	binary.BigEndian.PutUint16(b[22:], dstPort)
	binary.BigEndian.PutUint16(b[24:], uint16(8+payload))
	binary.BigEndian.PutUint32(b[28:], number)
	for i := 32; i < len(b); i++ {
		b[i] = byte(i) ^ byte(number)
	}
	return b
}

// checksum sets that of a header of IPv4.
func checksum(b []byte) {
	b[10], b[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
}

// reader runs a source, and keeps what it hands over.
type reader struct {
	*Source
	t    *testing.T
	stop context.CancelFunc
	done chan error

	mu      sync.Mutex
	frames  []ingest.Frame // with bytes of their own
	workers []int          // of frames
	until   []int64        // of batches
	hold    sync.Mutex     // locked while batches are to wait
}

func read(t *testing.T, cfg Config) *reader {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{Source: s, t: t, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, r.handle) }()
	t.Cleanup(cancel)
	return r
}

func (r *reader) handle(worker int, b *ingest.Batch) {
	r.hold.Lock()
	defer r.hold.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range b.Frames {
		f.Data = bytes.Clone(f.Data)
		r.frames, r.workers = append(r.frames, f), append(r.workers, worker)
	}
	if b.Until != 0 {
		r.until = append(r.until, b.Until)
	}
}

// taken is the number of frames that the filters took.
func (r *reader) taken() (n uint64) {
	for _, g := range r.groups {
		for _, k := range g.slots {
			k.mu.Lock()
			k.count()
			n += k.accepted
			k.mu.Unlock()
		}
	}
	return n
}

// await waits for n frames.
func (r *reader) await(n int) []ingest.Frame {
	r.t.Helper()
	testkit.Until(r.t, fmt.Sprintf("%d frames", n), func() bool { return len(r.all()) >= n })
	return r.all()
}

func (r *reader) all() []ingest.Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.frames)
}

// end stops the source.
func (r *reader) end() ingest.Stats {
	r.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	return r.Stats()
}

func settings(change func(*Config)) Config {
	c := DefaultConfig()
	c.Interfaces, c.Protocols, c.Workers, c.RingBytes, c.Wait = []string{"host0"}, []uint8{17}, 2, 16<<20, 100*time.Millisecond // 6 s of pauses
	if change != nil {
		change(&c)
	}
	return c
}

// TestFrames sends frames of all lengths and many flows, with and without tags, among unwanted ones. Each wanted frame
// comes once, byte for byte. The frames of a flow come from one worker, in order.
func TestFrames(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	var want [][]byte
	before := time.Now().UnixNano()
	for i := range uint32(3000) {
		frame := datagram(uint16(1000+i%50), 6343, i, 4+int(i%1400), []uint16{7, 4095}[:i%3]...)
		switch {
		case i%7 == 5:
			frame, s.sent = datagram(2000, 6343, i, 100), s.sent-1
			frame[13] = 6 // ARP is not taken
		case i%11 == 5:
			frame = append(frame[:12:12], append([]byte{7, 0}, frame[14:]...)...) // a probe
			want = append(want, frame)
		default:
			want = append(want, frame)
		}
		s.send(frame)
	}
	r.await(len(want))
	st := r.end()
	if len(r.frames) != len(want) || st.Frames != uint64(len(want)) || st.KernelDropped+st.Truncated != 0 {
		t.Fatalf("%d frames, and %+v; want %d", len(r.frames), st, len(want))
	}
	sent := map[string]int{} // by bytes, the place
	for i, frame := range want {
		sent[string(frame)] = i
	}
	type flow [2]byte
	last, worker := map[flow]int{}, map[flow]int{}
	used := map[int]bool{}
	for i, f := range r.frames {
		at, ok := sent[string(f.Data)]
		if !ok {
			t.Fatalf("frame %d was not sent so: % x", i, f.Data)
		}
		delete(sent, string(f.Data))
		if f.Link != ingest.LinkEthernet || f.Length != len(f.Data) || f.Time < before-int64(time.Second) || f.Time > time.Now().UnixNano() {
			t.Fatalf("frame %d: %+v", i, f)
		}
		used[r.workers[i]] = true
		if f.Data[12] != 8 { // the kernel has no flow for what it does not know
			continue
		}
		k := flow(f.Data[34:36])
		if before, ok := last[k]; ok && (at < before || r.workers[i] != worker[k]) {
			t.Fatalf("frame %d of worker %d came after %d of worker %d", at, r.workers[i], before, worker[k])
		}
		last[k], worker[k] = at, r.workers[i]
	}
	if len(used) != 2 {
		t.Errorf("%d workers had frames, want 2", len(used))
	}
}

// TestFragments sends a datagram in fragments, the last one first, which comes whole.
func TestFragments(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	whole := ipv4(1000, 6343, 1, 2000)
	for _, part := range [][2]int{{1400, len(whole) - 20}, {0, 1400}} {
		ip := slices.Concat(whole[:20], whole[20+part[0]:20+part[1]])
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		flags := part[0] / 8
		if part[1] < len(whole)-20 {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], uint16(flags))
		checksum(ip)
		s.send(append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0}, ip...))
	}
	got := r.await(1)[0].Data
	if want := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0}, whole...); !bytes.Equal(got, want) {
		t.Errorf("came %d bytes, want %d:\n% x", len(got), len(want), got[:min(len(got), 64)])
	}
	if st := r.end(); st.Frames != 1 || st.Bytes != uint64(len(got)) {
		t.Errorf("%+v", st)
	}
}

// TestLoopback reads what this machine sends itself, each datagram once although it leaves and arrives at one interface.
func TestLoopback(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.Interfaces = []string{"lo"} }))
	s := newSender(t, "lo", r)
	for i := range uint32(100) {
		s.send(datagram(1000, 6343, i, 100))
	}
	r.await(100)
	if st := r.end(); st.Frames != 100 {
		t.Errorf("%+v", st)
	}
}

// TestCut cuts frames that are too long, and counts them.
func TestCut(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.MaxFrameBytes = 100 }))
	s := newSender(t, "net0", r)
	s.send(datagram(1000, 6343, 1, 1000, 7))
	s.send(datagram(1000, 6343, 2, 20))
	frames := r.await(2)
	if f := frames[0]; len(f.Data) != 104 || f.Length != 18+28+1000 { // the tag is not counted, since the kernel strips it before
		t.Errorf("%d of %d bytes", len(f.Data), f.Length)
	}
	if st := r.end(); st.Truncated != 1 || st.Frames != 2 {
		t.Errorf("%+v", st)
	}
}

// TestFull blocks the workers until the rings are full. The frames handed over and dropped by the kernel are those
// that were sent.
func TestFull(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.RingBytes, c.Wait = 1<<20, time.Second }))
	s := newSender(t, "net0", r)
	r.hold.Lock()
	const sent = 20000
	for i := range uint32(sent) {
		s.send(datagram(uint16(i), 6343, i, 1000))
	}
	testkit.Until(t, "drops", func() bool { return r.Stats().KernelDropped > 0 })
	r.hold.Unlock()
	testkit.Until(t, "the rest", func() bool { st := r.Stats(); return st.Frames+st.KernelDropped == sent })
	if st := r.end(); st.Frames+st.KernelDropped != sent || st.Frames != uint64(len(r.all())) || st.Frames < 1000 {
		t.Errorf("%+v and %d frames, want %d", st, len(r.all()), sent)
	}
}

// TestStop ends a source at once after frames were sent: each is handed over.
func TestStop(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.Wait = time.Second }))
	s := newSender(t, "net0", r)
	for i := range uint32(500) {
		s.send(datagram(uint16(i), 6343, i, 100))
	}
	testkit.Until(t, "frames in rings", func() bool {
		return r.taken() == 500
	})
	if st := r.end(); st.Frames != 500 || len(r.all()) != 500 || st.KernelDropped != 0 {
		t.Errorf("%d frames, %+v", len(r.all()), st)
	}
}

// TestPrompt asks for all of a time: the answer comes behind the frames of that time, and without frames, too.
func TestPrompt(t *testing.T) {
	if !isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	answers := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.until)
	}
	for round := range 20 {
		for i := range uint32(50) {
			s.send(datagram(uint16(i), 6343, i, 100))
		}
		before := time.Now().UnixNano()
		r.Prompt(before)
		testkit.Until(t, "answers of both workers", func() bool { return answers() == 2*round+2 })
		if n := len(r.all()); n != 50*round+50 {
			t.Fatalf("round %d: answered with %d frames", round, n)
		}
		if u := r.until[len(r.until)-1]; u != before {
			t.Fatalf("answer %d to %d", u, before)
		}
	}
	r.Prompt(time.Now().UnixNano())
	testkit.Until(t, "answers of idle workers", func() bool { return answers() == 42 })
	r.end()
	r.Prompt(1) // too late, which is no harm
}

// TestDown takes the interface down, and removes it. Its input reports that, and later frames are read.
func TestDown(t *testing.T) {
	if !isolated(t) {
		return
	}
	ip(t, "link set host0 down")
	r := read(t, settings(nil))
	problem := func(text string) {
		t.Helper()
		testkit.Until(t, "problem "+text, func() bool {
			p := r.Inputs()[0].Problem
			return p == text || text != "" && strings.Contains(p, text)
		})
	}
	if n := r.Notices(); len(n) != 1 || !strings.Contains(n[0], "host0 is down") {
		t.Errorf("notices %q", n)
	}
	seen := 0
	comes := func() {
		t.Helper()
		problem("")
		s := newSender(t, "net0", r)
		testkit.Until(t, "frames", func() bool {
			s.send(datagram(uint16(seen), 6343, 1, 100))
			seen++
			return len(r.all()) > 20
		})
		r.mu.Lock()
		r.frames, r.workers = nil, nil
		r.mu.Unlock()
	}
	ip(t, "link set host0 up")
	comes()
	ip(t, "link set host0 down")
	problem("it is down")
	ip(t, "link set host0 up")
	comes()
	ip(t, "link del host0")
	problem("host0 is no interface of this machine")
	ip(t, "link add name host0 type veth peer name net0")
	problem("it is down")
	ip(t, "link set host0 up")
	ip(t, "link set net0 up")
	comes()
	if st := r.end(); st.Frames > uint64(seen) || st.KernelDropped != 0 {
		t.Errorf("%+v of %d", st, seen)
	}
}

// TestRefused opens interfaces that do not exist, or that may not be opened.
func TestRefused(t *testing.T) {
	if !isolated(t) {
		return
	}
	_, err := New(settings(func(c *Config) { c.Interfaces = []string{"nope0", "host0"} }))
	if err == nil || !strings.Contains(err.Error(), "nope0 is no interface of this machine (ip link lists them)") {
		t.Errorf("another name: %v", err)
	}
	g := group{name: "host0"}
	d, err := lookUp("host0")
	if err != nil {
		t.Fatal(err)
	}
	if err := explain("open", unix.EPERM); !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Error(err)
	}
	d.index = 12345
	c := settings(nil)
	if _, err := g.open(d, &c); err == nil || !strings.Contains(err.Error(), "bind: no such device") {
		t.Errorf("a device that is gone: %v", err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error("closed twice:", err)
	}
}
