package afxdp

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
	"github.com/hopscope/hopscope/internal/testkit"
)

// reader runs a source, and keeps what it hands over.
type reader struct {
	*Source
	testkit.FrameLog
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

func read(t *testing.T, cfg Config) *reader {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{Source: s, t: t, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, r.Handle) }()
	t.Cleanup(cancel)
	return r
}

// taken is the number of frames that were handed over or dropped.
func (r *reader) taken() uint64 {
	st := r.Stats()
	return st.Frames + st.KernelDropped
}

// arrived is the number of frames that the kernel put into rings, or dropped.
func (r *reader) arrived() (n uint64) {
	n = r.Stats().KernelDropped
	for _, p := range r.ports {
		for _, k := range p.slots {
			k.mu.Lock()
			for _, s := range append(slices.Clone(k.sockets), k.next...) {
				n += uint64(atomic.LoadUint32(s.rx.producer))
			}
			k.mu.Unlock()
		}
	}
	return n
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
	c.Interfaces, c.Workers, c.Queues, c.UMEMBytes, c.Wait, c.Datagrams = []string{"host0"}, 2, 2, 8<<20, 10*time.Millisecond, ports(6343)
	if change != nil {
		change(&c)
	}
	return c
}

func newSender(t *testing.T, name string, to *reader) *testkit.FrameSender {
	t.Helper()
	return testkit.NewFrameSender(t, device(t, name).Index, to.taken)
}

func device(t *testing.T, name string) afpacket.Device {
	t.Helper()
	d, err := afpacket.LookUp(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// firstCPU is a CPU that the test may use.
func firstCPU() []uint16 {
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set) // without it CPU 0, which is refused or right
	for cpu := range uint16(1024) {
		if set.IsSet(int(cpu)) {
			return []uint16{cpu}
		}
	}
	return []uint16{0}
}

// modes are the modes of a veth pair and of the loopback interface.
var modes = map[string]func(*Config){
	"driver":            func(c *Config) { c.Mode = ModeDriver },
	"generic":           func(c *Config) { c.Mode = ModeGeneric },
	"copied":            func(c *Config) { c.Copy = CopyAlways },
	"without wakeup":    func(c *Config) { c.NeedWakeup = false },
	"with a busy poll":  func(c *Config) { c.BusyPoll = 100 * time.Microsecond },
	"auto":              func(*Config) {},
	"over one worker":   func(c *Config) { c.Workers = 1 },
	"on a CPU":          func(c *Config) { c.CPUs = firstCPU() },
	"through AF_PACKET": func(c *Config) { c.Copy = CopyNever }, // veth has no zero-copy without XDP at its peer
}

// TestFrames sends frames of all lengths and many flows, with and without tags, in fragments and among unwanted ones, to AF_XDP
// in all modes and to AF_PACKET. Both hand over the same frames.
func TestFrames(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	for name, change := range modes {
		t.Run(name, func(t *testing.T) { testFrames(t, settings(change), name != "through AF_PACKET") })
	}
}

func testFrames(t *testing.T, cfg Config, steers bool) {
	r := read(t, cfg)
	if text := r.Inputs()[0].Name; strings.Contains(text, "AF_XDP") != steers {
		t.Fatalf("%s; %q", text, r.Notices())
	}
	s := newSender(t, "net0", r)
	steered := uint64(0)
	type sent struct {
		payload string
		link    uint16
	}
	var want []sent
	before := time.Now().UnixNano()
	for i := range uint32(2000) {
		n := 4 + int(i%1450)
		frame := testkit.UDPFrame(uint16(1000+i%50), 6343, i, n, []uint16{7, 4095}[:i%3]...)
		payload := string(frame[len(frame)-n:])
		switch {
		case i%7 == 5:
			frame[13] = 6 // ARP is not taken, nor is what is behind a tag of that type
			s.Send(frame, false)
			continue
		case i%11 == 5:
			frame = append(frame[:12:12], append([]byte{7, 0}, frame[14:]...)...) // a probe
			want = append(want, sent{string(frame), ingest.LinkEthernet})
		case i%13 == 5:
			whole := testkit.UDPPacket(1000, 6343, i, 2000)
			for k, part := range testkit.UDPFragments(whole, 1400) {
				s.Send(part, k == 1)
			}
			want = append(want, sent{string(whole[28:]), ingest.LinkUDP}) // put together by the kernel
			continue
		default:
			steered++
			want = append(want, sent{payload, ingest.LinkUDP})
		}
		s.Send(frame, true)
	}
	testkit.Until(t, "all came", func() bool { return r.Len() >= len(want) })
	st := r.end()
	frames, _ := r.All()
	if !steers {
		steered = 0
	}
	if st.Frames != uint64(len(frames)) || st.KernelDropped+st.Truncated != 0 || st.Steered != steered {
		t.Fatalf("%d frames, and %+v; want %d, %d of them steered", len(frames), st, len(want), steered)
	}
	missing := map[sent]int{}
	for _, w := range want {
		missing[w]++
	}
	for i, f := range frames {
		w := sent{string(f.Data), f.Link}
		if missing[w] == 0 {
			t.Fatalf("frame %d was not sent so: %d % x", i, f.Link, f.Data[:min(len(f.Data), 60)])
		}
		missing[w]--
		if f.Length != len(f.Data) || f.Time < before-int64(time.Millisecond) || f.Time > time.Now().UnixNano() {
			t.Fatalf("frame %d: %+v", i, f)
		}
	}
	for w, n := range missing {
		if n != 0 {
			t.Errorf("%d times did not come: % x", n, w.payload[:min(len(w.payload), 60)])
		}
	}
	if p := attached(t); p != 0 {
		t.Errorf("program %d is attached after the end", p)
	}
}

// attached is the number of the XDP program of host0, 0 without one.
func attached(t *testing.T) int {
	t.Helper()
	out, err := exec.Command("ip", "-d", "link", "show", "dev", "host0").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if bytes.Contains(out, []byte("prog/xdp")) {
		return 1
	}
	return 0
}

// TestLoopback reads what this machine sends itself, each datagram once.
func TestLoopback(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.Interfaces = []string{"lo"} }))
	s := newSender(t, "lo", r)
	for i := range uint32(100) {
		s.Send(testkit.UDPFrame(1000, 6343, i, 100), true)
	}
	r.Await(t, 100)
	if st := r.end(); st.Frames != 100 || st.Steered != 100 {
		t.Errorf("%+v, %q, %q", st, r.Inputs()[0].Name, r.Notices())
	}
}

// TestCut cuts frames that are too long by the settings, and takes those that are too long for a chunk through AF_PACKET.
func TestCut(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.IP(t, "link set host0 mtu 3000")
	testkit.IP(t, "link set net0 mtu 3000")
	r := read(t, settings(func(c *Config) { c.MaxFrameBytes = 100 }))
	s := newSender(t, "net0", r)
	s.Send(testkit.UDPFrame(1000, 6343, 1, 1000, 7), true)
	s.Send(testkit.UDPFrame(1000, 6343, 2, 20), true)
	s.Send(testkit.UDPFrame(1000, 6343, 3, 2500), true)
	frames := r.Await(t, 3)
	slices.SortFunc(frames, func(a, b ingest.Frame) int { return a.Length - b.Length })
	if frames[0].Length != 20 || frames[1].Length != 1000 || len(frames[1].Data) != 100-18-28 || frames[2].Length != 2500 || len(frames[2].Data) != 100-14-28 {
		t.Errorf("%d, %d of %d, %d of %d bytes", frames[0].Length, len(frames[1].Data), frames[1].Length, len(frames[2].Data), frames[2].Length)
	}
	if st := r.end(); st.Truncated != 2 || st.Frames != 3 || st.Steered != 2 {
		t.Errorf("%+v", st)
	}
}

// TestFull blocks the workers until the memory of the rings is full. The frames handed over and dropped by the kernel are those
// that were sent.
func TestFull(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	for _, mode := range []string{ModeDriver, ModeGeneric} {
		r := read(t, settings(func(c *Config) { c.UMEMBytes, c.Mode = 1<<18, mode }))
		s := testkit.NewFrameSender(t, device(t, "net0").Index, r.arrived)
		r.Hold.Lock()
		const sent = 5000
		for i := range uint32(sent) {
			s.Send(testkit.UDPFrame(uint16(i), 6343, i, 1000), true)
		}
		testkit.Until(t, "drops", func() bool { return r.Stats().RingDropped > 0 })
		r.Hold.Unlock()
		testkit.Until(t, "the rest", func() bool { return r.taken() == sent })
		if st := r.end(); st.Frames+st.KernelDropped != sent || st.KernelDropped != st.RingDropped+st.RingFull || st.FillEmpty == 0 || st.Frames != uint64(r.Len()) || st.Frames < 100 || st.InvalidDescriptors != 0 {
			t.Errorf("%s: %+v and %d frames, want %d", mode, st, r.Len(), sent)
		}
	}
}

// TestStop ends a source at once after frames were sent: each is handed over.
func TestStop(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	r.Hold.Lock()
	for i := range uint32(90) {
		s.Send(testkit.UDPFrame(uint16(i), 6343, i, 100), true)
	}
	testkit.Until(t, "frames in rings", func() bool { return r.arrived() == 90 })
	r.stop()
	r.Hold.Unlock()
	if st := r.end(); st.Frames != 90 || r.Len() != 90 || st.KernelDropped != 0 {
		t.Errorf("%d frames, %+v", r.Len(), st)
	}
}

// TestPrompt asks for all of a time: the answer comes behind the frames of that time, and without frames, too.
func TestPrompt(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	workers := r.Workers()
	if workers != 4 {
		t.Fatalf("%d workers", workers)
	}
	for round := range 20 {
		for i := range uint32(50) {
			s.Send(testkit.UDPFrame(uint16(i), 6343, i, 100), true)
		}
		before := time.Now().UnixNano()
		r.Prompt(before)
		testkit.Until(t, "answers of all workers", func() bool { return len(r.Answers()) == workers*(round+1) })
		if n := r.Len(); n != 50*round+50 {
			t.Fatalf("round %d: answered with %d frames", round, n)
		}
		if u := r.Answers(); u[len(u)-1] != before {
			t.Fatalf("answer %d to %d", u[len(u)-1], before)
		}
	}
	r.Prompt(time.Now().UnixNano())
	testkit.Until(t, "answers of idle workers", func() bool { return len(r.Answers()) == workers*21 })
	r.end()
	r.Prompt(1) // too late, which is no harm
}

// TestDown takes the interface down, and removes it. Later frames are steered again.
func TestDown(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.IP(t, "link set host0 down")
	r := read(t, settings(nil))
	if n := r.Notices(); len(n) != 1 || !strings.Contains(n[0], "host0 is down") {
		t.Errorf("notices %q", n)
	}
	comes := func() {
		t.Helper()
		before := r.Stats().Steered
		s := testkit.NewFrameSender(t, device(t, "net0").Index, func() uint64 { return 0 })
		n := uint32(0)
		testkit.Until(t, "frames are steered", func() bool {
			s.Send(testkit.UDPFrame(uint16(n), 6343, 1, 100), false)
			n++
			return r.Stats().Steered > before+20
		})
		testkit.Until(t, "the problem is over", func() bool { return r.Inputs()[0].Problem == "" })
	}
	testkit.IP(t, "link set host0 up")
	comes()
	testkit.IP(t, "link set host0 down")
	testkit.Until(t, "a problem", func() bool { return strings.Contains(r.Inputs()[0].Problem, "it is down") })
	testkit.IP(t, "link set host0 up")
	comes()
	testkit.IP(t, "link del host0")
	testkit.Until(t, "a problem", func() bool { return strings.Contains(r.Inputs()[0].Problem, "no interface") })
	testkit.IP(t, "link add name host0 type veth peer name net0")
	testkit.IP(t, "link set host0 up")
	testkit.IP(t, "link set net0 up")
	comes()
	r.end()
}

// TestFallback reads through AF_PACKET where another program has XDP, and says why.
func TestFallback(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	first := read(t, settings(nil))
	r := read(t, settings(func(c *Config) { c.Datagrams = ports(53) }))
	if n := r.Notices(); len(n) != 1 || !strings.HasPrefix(n[0], "host0 is read through AF_PACKET alone, since AF_XDP is not possible: ") || !strings.Contains(n[0], "another program has XDP") {
		t.Errorf("%q", n)
	}
	s := newSender(t, "net0", r)
	for i := range uint32(50) {
		s.Send(testkit.UDPFrame(uint16(i), 53, i, 100), true)
	}
	r.Await(t, 50)
	if st := r.end(); st.Frames != 50 || st.Steered != 0 {
		t.Errorf("%+v", st)
	}
	first.end()
	if _, err := New(settings(func(c *Config) { c.Interfaces = []string{"nope0"} })); err == nil || !strings.Contains(err.Error(), "afxdp: nope0 is no interface of this machine") {
		t.Errorf("another name: %v", err)
	}
	s2, err := New(settings(nil))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s2.Close(); err != nil {
			t.Error(err)
		}
	}
	if attached(t) != 0 {
		t.Error("a program is attached after Close")
	}
}

// TestKilled kills a process that reads through AF_XDP. The kernel detaches its program.
func TestKilled(t *testing.T) {
	const child = "HOPSCOPE_AFXDP_KILLED"
	if os.Getenv(child) != "" {
		read(t, settings(nil))
		os.Stdout.WriteString("reading\n")
		time.Sleep(testkit.Patience)
		return
	}
	if !testkit.Isolated(t) {
		return
	}
	c := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 8)
	if _, err := out.Read(line); err != nil || string(line) != "reading\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if attached(t) == 0 {
		t.Fatal("no program is attached")
	}
	if err := c.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	testkit.Until(t, "the program is detached", func() bool { return attached(t) == 0 })
}

// TestRights loads the program with no more rights than the pages name.
func TestRights(t *testing.T) {
	const child = "HOPSCOPE_AFXDP_RIGHTS"
	if os.Getenv(child) != "" {
		if _, _, err := load(settingsOf(func(c *Config) { c.Addresses = []string{"10.0.0.0/8", "2001:db8::/33"} }), 4); err != nil {
			t.Fatal(err)
		}
		s, err := New(settings(func(c *Config) { c.UMEMBytes = 1 << 18 })) // within the memory that anyone may lock
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Notices(); len(n) > 0 {
			t.Fatal(n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !testkit.Isolated(t) {
		return
	}
	for rights, works := range map[string]bool{"net_raw,net_admin,bpf": true, "net_raw,net_admin": false, "net_raw": false} {
		c := exec.Command("setpriv", "--bounding-set=-all,+"+strings.ReplaceAll(rights, ",", ",+"), "--inh-caps=-all,+"+strings.ReplaceAll(rights, ",", ",+"), os.Args[0], "-test.run", "^TestRights$")
		c.Env = append(os.Environ(), child+"=1")
		out, err := c.CombinedOutput()
		if works != (err == nil) || !works && !bytes.Contains(out, []byte("it needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")) && !bytes.Contains(out, []byte("operation not permitted")) {
			t.Errorf("with %s: %v\n%s", rights, err, out)
		}
	}
}
