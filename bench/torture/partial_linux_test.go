//go:build torture

package torture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/servertest"
)

// third reports whether a text is of the third of all that fails.
func third(text string) bool {
	h := fnv.New32a()
	io.WriteString(h, text)
	return h.Sum32()%3 == 0
}

// thirdOfLines fails for writes in which a line is of the third of series that fails.
func thirdOfLines(p *proxy, w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return true
	}
	plain := body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			plain, _ = io.ReadAll(z)
		}
	}
	for line := range strings.Lines(string(plain)) {
		if series, _, _ := strings.Cut(line, " "); third(series) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"code":"internal error","message":"unexpected error writing points to database: engine: fault"}`)
			return true
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return false
}

// receiver takes alerts over HTTP, and fails for a third of them as long as it is faulty.
type receiver struct {
	*httptest.Server
	faulty  atomic.Bool
	mu      sync.Mutex
	arrived map[string]bool
	taken   map[string]int
	failed  int
}

// newReceiver makes one that finds the names of alerts in what is sent to it.
func newReceiver(t *testing.T, names func(body []byte) []string) *receiver {
	x := &receiver{arrived: map[string]bool{}, taken: map[string]int{}}
	x.faulty.Store(true)
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		list := names(body)
		for _, name := range list {
			x.arrived[name] = true
			if x.faulty.Load() && third(name) {
				x.failed++
				http.Error(w, "fault", http.StatusInternalServerError)
				return
			}
		}
		for _, name := range list {
			x.taken[name]++
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// dropsOf sends a drop of each of so many nodes.
func (s *sender) dropsOf(nodes int) {
	for node := range uint32(nodes) {
		h := telemetry.Header{NodeID: node + 100, Inner: telemetry.InnerIPv4, Flags: decode.Dropped, Metadata: telemetry.MDInterfaces | telemetry.MDDrop, DropReason: 3}
		inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
		inner = packet.AppendUDP(inner, 5000, 6000, 0)
		if _, err := s.conn.WriteToUDPAddrPort(append(telemetry.Append20(telemetry.AppendGroup(nil, 1, 0, h.NodeID), &h, len(inner)), inner...), s.to); err != nil {
			s.t.Errorf("sending: %v", err)
		}
	}
}

// partialRows let what a collector depends on fail for a part of what it gets.
func partialRows() []row {
	alerts := func(settings string, names func(body []byte) []string) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			const nodes = 30
			r.Unit = "alerts"
			x := newReceiver(t, names)
			p := newPlace(t, placeOptions{server: startStore(t, servertest.Influx2), settings: "alerts: {learning: true, heartbeat: 0s}\n" + fmt.Sprintf(settings, x.URL)})
			c := p.start()
			s := newSender(t, p.udp)
			s.dropsOf(nodes)
			count := func() (arrived, taken, twice, failed int) {
				x.mu.Lock()
				defer x.mu.Unlock()
				for _, n := range x.taken {
					twice += n - 1
				}
				return len(x.arrived), len(x.taken), twice, x.failed
			}
			waitFor(t, time.Minute, "alerts of all nodes, and those that do not fail", func() bool {
				arrived, taken, _, failed := count()
				return arrived >= nodes && taken >= nodes/3 && failed > 0
			})
			x.faulty.Store(false)
			waitFor(t, time.Minute, "the alerts that failed", func() bool { arrived, taken, _, _ := count(); return taken == arrived })
			c.stop()
			arrived, taken, twice, failed := count()
			r.Sent, r.Stored, r.Doubled = int64(arrived), int64(taken), int64(twice)
			r.Remark = fmt.Sprintf("%d requests failed", failed)
			r.settle()
		}
	}
	return []row{
		{name: "a store fails for one line of three", run: func(t *testing.T, r *result) {
			r.Unit = "points"
			server := startStore(t, servertest.Influx2)
			x := newProxy(t, server)
			p := newPlace(t, placeOptions{server: server, store: x.URL, window: "1s"})
			c := p.start()
			s := newSenderOf(t, p.udp, 8)
			s.send(1000, rate)
			x.set(thirdOfLines)
			s.send(short(3*rate, 10*rate), rate)
			waitFor(t, time.Minute, "points that are set aside", func() bool { n, _ := c.metric("hopscope_sink_aside_points"); return n > 0 })
			if status, body := c.get("/readyz"); status == http.StatusOK {
				t.Errorf("ready while the store fails: %s", body)
			}
			x.set(nil)
			s.trailer()
			c.drained()
			waitFor(t, 2*time.Minute, "the points that were set aside", func() bool { n, ok := c.metric("hopscope_sink_aside_points"); return ok && n == 0 })
			sum := c.stop()
			r.Sent, r.Stored = sum.Ledger.Points.Made, count(t, server).points
			r.Lost["refused and kept"] = sum.Ledger.Points.Refused
			r.Remark = fmt.Sprintf("%d writes hit", x.hits.Load())
			r.settle()
		}},
		{name: "a webhook fails for one alert of three", run: alerts("webhook: {enabled: true, url: %q, spool: {enabled: false}, queue: {retry_min: 10ms, retry_max: 200ms}}\n", func(body []byte) []string {
			var a struct{ Key, Status, Finding string }
			if json.Unmarshal(body, &a) != nil {
				return nil
			}
			return []string{a.Status + " " + a.Key + " " + a.Finding}
		})},
		{name: "Alertmanager fails for one alert of three", run: alerts("alertmanager: {enabled: true, url: %q, spool: {enabled: false}, queue: {retry_min: 10ms, retry_max: 200ms}}\n", func(body []byte) (names []string) {
			var list []struct {
				Labels map[string]string
				EndsAt string // of one that has ended: the same alert comes again for that
			}
			if json.Unmarshal(body, &list) != nil {
				return nil
			}
			for _, a := range list {
				names = append(names, fmt.Sprint(a.Labels, a.EndsAt != ""))
			}
			return names
		})},
		{name: "more exporters than there are places", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			p := newPlace(t, placeOptions{server: server, settings: "exporters: {tracking: {max_exporters: 1}}\n"})
			c := p.start()
			s := newSender(t, p.udp)
			s.send(short(4000, 40000), rate)
			s.trailer()
			c.drained()
			n, _ := c.metric("hopscope_left_out", `setting="exporters.tracking.max_exporters"`)
			if n != exporters-1 {
				t.Errorf("%v exporters are said to have no place, of %d", n, exporters)
			}
			c.stop()
			r.Remark = fmt.Sprintf("%.0f of %d exporters without a place", n, exporters)
			// Rows of exporters are those that have a place; hops are of all.
			r.Sent, r.Stored = s.sent.Load(), count(t, server).hops/hops
			r.settle()
		}},
		{name: "datagrams are longer than udp.max_datagram_bytes", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			p := newPlace(t, placeOptions{server: server, udp: "  max_datagram_bytes: 204\n"}) // a report, and a few bytes of the next one
			c := p.start()
			s := newSender(t, p.udp)
			const pairs, long = 19_000, 1000
			const datagrams = pairs + long
			s.pairs(pairs, 5*rate)
			s.long(long, 5*rate)
			s.trailer()
			c.drained()
			n, _ := c.metric("hopscope_left_out", `setting="udp.max_datagram_bytes"`)
			sum := c.stop()
			b := &sum.Ledger
			h := count(t, server)
			r.Sent, r.Stored = s.sent.Load(), h.hops/hops
			r.Lost["cut"] = b.Dropped["cut"]
			r.Lost["on the way"] = 2 * h.lost // a number is that of a datagram
			r.Remark = fmt.Sprintf("of %d datagrams, %d of them cut inside of their INT stack", datagrams, long)
			if b.Received != b.Stored+b.Dropped["cut"] || b.Dropped["cut"] != datagrams-h.lost || int64(n) != b.Dropped["cut"] {
				t.Errorf("the ledger says %+v, hopscope_left_out %v", b, n)
			}
			r.settle()
		}},
		{name: "a replay is killed (kill -9) and done again", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			p := newPlace(t, placeOptions{server: server, instance: "replayed", drain: 2 * time.Minute}) // a store takes longer than a file on a busy machine
			capture, sent := p.capture(short(4000, 40000))
			replay := func(args ...string) *exec.Cmd {
				c := exec.Command(program, append([]string{"replay", capture, "--config", p.config(), "--format", "json", "--report-port", fmt.Sprint(p.udp.Port())}, args...)...)
				c.Dir, c.Env = p.dir, append(os.Environ(), tokenEnv+"="+server.Token)
				return c
			}
			c := replay("--speed", "1")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, time.Minute, "the first windows", func() bool { return count(t, server).hops > 0 })
			c.Process.Kill()
			c.Wait()
			before := count(t, server).hops / hops
			if before >= sent {
				t.Error("the replay was over before it was killed, so nothing was tested")
			}
			if out, err := replay().CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			h := count(t, server)
			r.Sent, r.Stored = sent, h.hops/hops
			r.Remark = fmt.Sprintf("%d were stored when it was killed", before)
			r.settle()
		}},
	}
}

// pairs sends n datagrams with two reports each, as long as two.
func (s *sender) pairs(n, rate int) {
	var second []byte
	others := newSender(s.t, s.to).gen // of which no number is sent
	start := time.Now()
	for i := range n {
		if i%10 == 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		s.buf, second = s.gen.NextFrom(i%exporters, s.buf), others.NextFrom(i%exporters, second)
		if _, err := s.conn.WriteToUDPAddrPort(append(slices.Clone(s.buf), second[groupBytes:]...), s.to); err != nil {
			s.t.Errorf("sending: %v", err)
			return
		}
		s.sent.Add(2)
	}
}

// long sends n datagrams with one report each of a node of its own. Its stack of twelve hops is longer than those of
// the others.
func (s *sender) long(n, rate int) {
	s.t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 40, Hops: 12, Exporters: exporters + 1, Bytes: 400})
	if err != nil {
		s.t.Fatal(err)
	}
	start := time.Now()
	for i := range n {
		if i%10 == 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		s.buf = gen.NextFrom(exporters, s.buf)
		if _, err := s.conn.WriteToUDPAddrPort(s.buf, s.to); err != nil {
			s.t.Errorf("sending: %v", err)
			return
		}
		s.sent.Add(1)
	}
}

// groupBytes is the length of the head of a group of reports 2.0.
const groupBytes = 8

// capture writes reports of the last seconds to a capture, 1000 a second and returns its path and their number.
func (p *place) capture(n int) (path string, sent int64) {
	p.t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 40, Hops: hops, Exporters: exporters, Bytes: 200})
	if err != nil {
		p.t.Fatal(err)
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4) // of microseconds, version 2.4, packets of IPv4 (228)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 0), 0), 65535), 228)
	at := time.Now().Add(-time.Duration(n) * time.Millisecond)
	var buf []byte
	for range n {
		buf = gen.Next(buf)
		udp := packet.AppendUDP(nil, 40000, p.udp.Port(), len(buf))
		ip := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}, len(udp)+len(buf))
		size := uint32(len(ip) + len(udp) + len(buf))
		b = le.AppendUint32(le.AppendUint32(b, uint32(at.Unix())), uint32(at.Nanosecond()/1000))
		b = le.AppendUint32(le.AppendUint32(b, size), size)
		b = append(append(append(b, ip...), udp...), buf...)
		at = at.Add(time.Millisecond)
	}
	path = filepath.Join(p.dir, "reports.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path, int64(n)
}
