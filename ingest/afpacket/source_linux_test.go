package afpacket

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// sender sends frames out of an interface, at the pace of the reader.
type sender struct{ *testkit.FrameSender }

func newSender(t *testing.T, name string, to *reader) sender {
	t.Helper()
	d, err := LookUp(name)
	if err != nil {
		t.Fatal(err)
	}
	return sender{testkit.NewFrameSender(t, d.Index, to.taken)}
}

func (s sender) send(frame []byte) { s.Send(frame, true) }

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
	if !testkit.Isolated(t) {
		return
	}
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	r := read(t, settings(func(c *Config) {
		for cpu := range uint16(1024) {
			if own.IsSet(int(cpu)) {
				c.CPUs = append(c.CPUs, cpu)
			}
		}
	}))
	s := newSender(t, "net0", r)
	var want [][]byte
	before := time.Now().UnixNano()
	for i := range uint32(3000) {
		frame := testkit.UDPFrame(uint16(1000+i%50), 6343, i, 4+int(i%1400), []uint16{7, 4095}[:i%3]...)
		switch {
		case i%7 == 5:
			frame = testkit.UDPFrame(2000, 6343, i, 100)
			frame[13] = 6 // ARP is not taken
		case i%11 == 5:
			frame = append(frame[:12:12], append([]byte{7, 0}, frame[14:]...)...) // a probe
			want = append(want, frame)
		default:
			want = append(want, frame)
		}
		s.Send(frame, i%7 != 5)
	}
	r.Await(t, len(want))
	st := r.end()
	frames, workers := r.All()
	if len(frames) != len(want) || st.Frames != uint64(len(want)) || st.KernelDropped+st.Truncated != 0 {
		t.Fatalf("%d frames, and %+v; want %d", len(frames), st, len(want))
	}
	sent := map[string]int{} // by bytes, the place
	for i, frame := range want {
		sent[string(frame)] = i
	}
	type flow [2]byte
	last, worker := map[flow]int{}, map[flow]int{}
	used := map[int]bool{}
	for i, f := range frames {
		at, ok := sent[string(f.Data)]
		if !ok {
			t.Fatalf("frame %d was not sent so: % x", i, f.Data)
		}
		delete(sent, string(f.Data))
		if f.Link != ingest.LinkEthernet || f.Length != len(f.Data) || f.Time < before-int64(time.Second) || f.Time > time.Now().UnixNano() {
			t.Fatalf("frame %d: %+v", i, f)
		}
		used[workers[i]] = true
		if f.Data[12] != 8 { // the kernel has no flow for what it does not know
			continue
		}
		k := flow(f.Data[34:36])
		if before, ok := last[k]; ok && (at < before || workers[i] != worker[k]) {
			t.Fatalf("frame %d of worker %d came after %d of worker %d", at, workers[i], before, worker[k])
		}
		last[k], worker[k] = at, workers[i]
	}
	if len(used) != 2 {
		t.Errorf("%d workers had frames, want 2", len(used))
	}
}

// TestFragments sends a datagram in fragments, the last one first, which comes whole.
func TestFragments(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(nil))
	s := newSender(t, "net0", r)
	whole := testkit.UDPPacket(1000, 6343, 1, 2000)
	for _, frame := range testkit.UDPFragments(whole, 1400) {
		s.send(frame)
	}
	got := r.Await(t, 1)[0].Data
	if want := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0}, whole...); !bytes.Equal(got, want) {
		t.Errorf("came %d bytes, want %d:\n% x", len(got), len(want), got[:min(len(got), 64)])
	}
	if st := r.end(); st.Frames != 1 || st.Bytes != uint64(len(got)) {
		t.Errorf("%+v", st)
	}
}

// TestLoopback reads what this machine sends itself, each datagram once although it leaves and arrives at one interface.
func TestLoopback(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.Interfaces = []string{"lo"} }))
	s := newSender(t, "lo", r)
	for i := range uint32(100) {
		s.send(testkit.UDPFrame(1000, 6343, i, 100))
	}
	r.Await(t, 100)
	if st := r.end(); st.Frames != 100 {
		t.Errorf("%+v", st)
	}
}

// TestCut cuts frames that are too long, and counts them.
func TestCut(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.MaxFrameBytes = 100 }))
	s := newSender(t, "net0", r)
	s.send(testkit.UDPFrame(1000, 6343, 1, 1000, 7))
	s.send(testkit.UDPFrame(1000, 6343, 2, 20))
	frames := r.Await(t, 2)
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
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.RingBytes, c.Wait = 1<<20, time.Second }))
	s := newSender(t, "net0", r)
	r.Hold.Lock()
	const sent = 20000
	for i := range uint32(sent) {
		s.send(testkit.UDPFrame(uint16(i), 6343, i, 1000))
	}
	testkit.Until(t, "drops", func() bool { return r.Stats().KernelDropped > 0 })
	r.Hold.Unlock()
	testkit.Until(t, "the rest", func() bool { st := r.Stats(); return st.Frames+st.KernelDropped == sent })
	if st := r.end(); st.Frames+st.KernelDropped != sent || st.Frames != uint64(r.Len()) || st.Frames < 1000 {
		t.Errorf("%+v and %d frames, want %d", st, r.Len(), sent)
	}
}

// TestStop ends a source at once after frames were sent: each is handed over.
func TestStop(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	r := read(t, settings(func(c *Config) { c.Wait = time.Second }))
	s := newSender(t, "net0", r)
	for i := range uint32(500) {
		s.send(testkit.UDPFrame(uint16(i), 6343, i, 100))
	}
	testkit.Until(t, "frames in rings", func() bool {
		return r.taken() == 500
	})
	if st := r.end(); st.Frames != 500 || r.Len() != 500 || st.KernelDropped != 0 {
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
	answers := func() int { return len(r.Answers()) }
	for round := range 20 {
		for i := range uint32(50) {
			s.send(testkit.UDPFrame(uint16(i), 6343, i, 100))
		}
		before := time.Now().UnixNano()
		r.Prompt(before)
		testkit.Until(t, "answers of both workers", func() bool { return answers() == 2*round+2 })
		if n := r.Len(); n != 50*round+50 {
			t.Fatalf("round %d: answered with %d frames", round, n)
		}
		if u := r.Answers()[2*round+1]; u != before {
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
	if !testkit.Isolated(t) {
		return
	}
	testkit.IP(t, "link set host0 down")
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
			s.send(testkit.UDPFrame(uint16(seen), 6343, 1, 100))
			seen++
			return r.Len() > 20
		})
		r.Forget()
	}
	testkit.IP(t, "link set host0 up")
	comes()
	testkit.IP(t, "link set host0 down")
	problem("it is down")
	testkit.IP(t, "link set host0 up")
	comes()
	testkit.IP(t, "link del host0")
	problem("host0 is no interface of this machine")
	testkit.IP(t, "link add name host0 type veth peer name net0")
	problem("it is down")
	testkit.IP(t, "link set host0 up")
	testkit.IP(t, "link set net0 up")
	comes()
	if st := r.end(); st.Frames > uint64(seen) || st.KernelDropped != 0 {
		t.Errorf("%+v of %d", st, seen)
	}
}

// TestRefused opens interfaces that do not exist, or that may not be opened.
func TestRefused(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	_, err := New(settings(func(c *Config) { c.Interfaces = []string{"nope0", "host0"} }))
	if err == nil || !strings.Contains(err.Error(), "nope0 is no interface of this machine (ip link lists them)") {
		t.Errorf("another name: %v", err)
	}
	g := group{name: "host0"}
	d, err := LookUp("host0")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Config{}).explain("open", unix.EPERM); !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Error(err)
	}
	d.Index = 12345
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
