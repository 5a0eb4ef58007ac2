//go:build torture

package torture

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The reports are of several exporters and have all the same number of hops. The store's count of hops and its count
// of reports then have to agree.
const (
	exporters = 4
	hops      = 3
	tokenEnv  = "HOPSCOPE_TORTURE_TOKEN"
)

// place is where a collector runs: its ports, its settings and its files, which outlive it.
type place struct {
	t    *testing.T
	dir  string
	udp  netip.AddrPort
	web  string
	opt  placeOptions
	runs []*run       // that ended, in order
	conn *net.UDPConn // to send from, for callers without a socket
}

type placeOptions struct {
	store    string // address of the store or of what stands before it
	server   *servertest.Influx
	window   string // 250ms if empty
	instance string
	settings string // more, as YAML
	influx   string // more lines of the section influx, indented
	spool    string // more lines of influx.spool, indented
	queue    string // more lines of influx.queue, indented
	udp      string // more lines of the section udp, indented
	disk     *disk  // what stands between the program and its disk

	kafka    string // the section kafka, for a member of a fleet: a collector then has no other store
	consumer bool   // runs consume
	console  bool   // runs console

	drain time.Duration // drain_timeout; 0 is 5 s
}

func newPlace(t *testing.T, opt placeOptions) *place {
	t.Helper()
	if opt.store == "" {
		opt.store = opt.server.URL
	}
	if opt.window == "" {
		opt.window = "250ms"
	}
	p := &place{t: t, dir: t.TempDir(), udp: netip.MustParseAddrPort(testkit.FreeAddr(t)), web: testkit.FreeAddr(t), opt: opt}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		refused, err := exec.Command(program, "spool", "list", "--config", filepath.Join(p.dir, "hopscope.yaml")).CombinedOutput()
		t.Logf("%s: the end of the log:\n%s\nwhat stores refused: %v\n%.4000s", p.opt.instance, p.tail(), err, refused)
	})
	return p
}

func (p *place) spoolDir() string { return filepath.Join(p.dir, "spool") }

// config writes the settings and returns their path.
func (p *place) config() string {
	p.t.Helper()
	o := &p.opt
	var b strings.Builder
	if o.instance != "" {
		fmt.Fprintf(&b, "instance: %s\n", o.instance)
	}
	fmt.Fprintf(&b, "window: %s\nshards: 2\ndrain_timeout: %v\n", o.window, cmp.Or(o.drain, 5*time.Second))
	fmt.Fprintf(&b, "web:\n  listen: %q\n", p.web)
	if !o.consumer && !o.console {
		fmt.Fprintf(&b, "udp:\n  listen: [%q]\n  workers: 1\n%s", p.udp, o.udp)
	}
	if o.kafka != "" {
		b.WriteString(o.kafka)
		if !o.consumer && !o.console {
			fmt.Fprintf(&b, "  spool:\n    dir: %q\n%s", p.spoolDir(), o.spool)
		}
	}
	if o.kafka == "" || o.consumer {
		fmt.Fprintf(&b, "influx:\n  enabled: true\n  url: %q\n  org: %q\n  bucket: %q\n  timeout: 2s\n", o.store, o.server.Org, o.server.Bucket)
		if o.server.Token != "" {
			fmt.Fprintf(&b, "  token_env: %s\n", tokenEnv)
		}
		fmt.Fprintf(&b, "%s  queue:\n    retry_min: 10ms\n    retry_max: 200ms\n%s", o.influx, o.queue)
		if o.consumer {
			b.WriteString("  spool:\n    enabled: false\n")
		} else {
			fmt.Fprintf(&b, "  spool:\n    dir: %q\n%s", p.spoolDir(), o.spool)
		}
	}
	b.WriteString(o.settings)
	path := filepath.Join(p.dir, "hopscope.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// run is one process of the program.
type run struct {
	p       *place
	cmd     *exec.Cmd
	out     bytes.Buffer
	log     *os.File
	done    chan error
	ended   bool
	summary *summary // of a run that ended in order
}

// summary is the program's summary of a run.
type summary struct {
	Reports   int64 `json:"reports"`
	Exporters []struct {
		Address   string `json:"address"`
		NodeID    uint32 `json:"node_id"`
		Reports   int64  `json:"reports"`
		Lost      int64  `json:"lost"`
		Restarts  int64  `json:"restarts"`
		Malformed int64  `json:"malformed"`
	} `json:"exporters"`
	Ledger balance `json:"loss_ledger"`
}

type balance struct {
	Received  int64            `json:"received"`
	Carried   int64            `json:"carried"`
	Stored    int64            `json:"stored"`
	InFlight  map[string]int64 `json:"in_flight"`
	Dropped   map[string]int64 `json:"dropped"`
	Unsettled int64            `json:"unsettled"`
	Points    *struct {
		Made      int64            `json:"made"`
		Stored    int64            `json:"stored"`
		InFlight  map[string]int64 `json:"in_flight"`
		Dropped   map[string]int64 `json:"dropped"`
		Refused   int64            `json:"refused"`
		Unsettled int64            `json:"unsettled"`
	} `json:"points"`
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// start starts the program and waits until its socket is open.
func (p *place) start() *run {
	p.t.Helper()
	r := p.launch()
	r.up()
	return r
}

// launch starts the program.
func (p *place) launch() *run {
	p.t.Helper()
	r := &run{p: p, done: make(chan error, 1)}
	args := []string{p.command(), "--config", p.config()}
	if !p.opt.console {
		args = append(args, "--format", "json")
	}
	r.cmd = exec.Command(program, args...)
	r.cmd.Dir = p.dir
	r.cmd.Stdout = &r.out
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	r.log, r.cmd.Stderr = log, log
	r.cmd.Env = append(os.Environ(), "HTTP_PROXY=", "http_proxy=", tokenEnv+"="+p.opt.server.Token)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.opt.disk != nil {
		p.opt.disk.attach(p.t, r.cmd)
	}
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	p.t.Cleanup(r.kill)
	return r
}

// up waits until the program that was launched has its socket open.
func (r *run) up() {
	p := r.p
	p.t.Helper()
	serves := func() bool { return listening(p.udp) }
	if p.opt.consumer || p.opt.console {
		serves = func() bool { status, _ := r.get("/healthz"); return status == http.StatusOK }
	}
	for end := time.Now().Add(testkit.Patience); !serves(); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-r.done:
			r.ended = true
			p.t.Fatalf("the collector ended: %v\n%s", err, p.tail())
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s opens no socket\n%s", p.command(), p.tail())
		}
	}
}

func (p *place) command() string {
	switch {
	case p.opt.consumer:
		return "consume"
	case p.opt.console:
		return "console"
	}
	return "collect"
}

// dial opens a socket to send from.
func (p *place) dial() {
	p.t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.conn = conn
	p.t.Cleanup(func() { conn.Close() })
}

func (p *place) tail() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(b[max(0, len(b)-4096):])
}

func (p *place) logged() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(b)
}

// listening looks into the kernel's list of sockets, which has addresses as this machine's order of bytes makes
// numbers of them.
func listening(at netip.AddrPort) bool {
	b, err := os.ReadFile("/proc/net/udp")
	ip := at.Addr().As4()
	return err == nil && strings.Contains(string(b), fmt.Sprintf("%08X:%04X 00000000:0000", binary.NativeEndian.Uint32(ip[:]), at.Port()))
}

// kill is kill -9.
func (r *run) kill() {
	if r.ended {
		return
	}
	r.cmd.Process.Kill()
	<-r.done
	r.ended = true
	r.log.Close()
	r.p.runs = append(r.p.runs, r)
}

// pause stops the process where it is, and resume lets it go on.
func (r *run) pause()  { r.cmd.Process.Signal(syscall.SIGSTOP) }
func (r *run) resume() { r.cmd.Process.Signal(syscall.SIGCONT) }

// stop ends the run as an operator does, and reads its summary.
func (r *run) stop() *summary {
	t := r.p.t
	t.Helper()
	if r.ended {
		t.Fatal("the collector has ended")
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-r.done:
	case <-time.After(testkit.Patience):
		r.cmd.Process.Signal(syscall.SIGQUIT)
		err = <-r.done
	}
	r.ended = true
	r.log.Close()
	r.p.runs = append(r.p.runs, r)
	if err != nil {
		t.Errorf("the collector ended with %v\n%s", err, r.p.tail())
	}
	if r.p.opt.console {
		return nil
	}
	r.summary = &summary{}
	if err := json.Unmarshal(r.out.Bytes(), r.summary); err != nil {
		t.Fatalf("summary: %v in %q\n%s", err, r.out.Bytes(), r.p.tail())
	}
	if n := r.summary.Ledger.Unsettled; n != 0 {
		t.Errorf("the ledger does not add up: %d unsettled", n)
	}
	if p := r.summary.Ledger.Points; p != nil && p.Unsettled != 0 {
		t.Errorf("the ledger of points does not add up: %d unsettled", p.Unsettled)
	}
	return r.summary
}

// get asks the page's port.
func (r *run) get(path string) (status int, body string) {
	resp, err := http.Get("http://" + r.p.web + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// metric sums up a metric over all its labels that contain what is asked for.
func (r *run) metric(name string, labels ...string) (sum float64, ok bool) {
	_, body := r.get("/metrics")
	for line := range strings.Lines(body) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _, _ := strings.Cut(series, "{")
		if n != name {
			continue
		}
		match := true
		for _, l := range labels {
			match = match && strings.Contains(series, l)
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil && match {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// drained waits until nothing is on its way to the store.
func (r *run) drained() {
	r.p.t.Helper()
	waitFor(r.p.t, 2*time.Minute, "the spool to be empty", func() bool {
		spool, ok := r.metric("hopscope_ledger_in_flight", `stage="spool"`)
		queue, ok2 := r.metric("hopscope_ledger_in_flight", `stage="sink-queue"`)
		return ok && ok2 && spool == 0 && queue == 0
	})
}

// peak is the most memory that the process had.
func (r *run) peak() int64 {
	r.p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		r.p.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				r.p.t.Fatal(err)
			}
			return kb << 10
		}
	}
	r.p.t.Fatal("no VmHWM")
	return 0
}

// sender sends reports at a steady rate until it is stopped, with or without a listener.
type sender struct {
	gen  *traffic.Generator
	conn *net.UDPConn
	to   netip.AddrPort
	sent atomic.Int64
	end  chan struct{}
	wait sync.WaitGroup
	t    *testing.T
	buf  []byte
}

func newSender(t *testing.T, to netip.AddrPort) *sender { return newSenderOf(t, to, 40) }

// newSenderOf makes a sender of reports about so many flows.
func newSenderOf(t *testing.T, to netip.AddrPort, flows int) *sender {
	t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: uint64(rng.Int64N(1 << 62)), Flows: flows, Hops: hops, Exporters: exporters, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &sender{gen: gen, conn: conn, to: to, t: t}
}

func (s *sender) one() {
	s.buf = s.gen.Next(s.buf)
	if _, err := s.conn.WriteToUDPAddrPort(s.buf, s.to); err != nil {
		s.t.Errorf("sending: %v", err)
		return
	}
	s.sent.Add(1)
}

// send sends n reports at a rate.
func (s *sender) send(n, rate int) {
	start := time.Now()
	for i := range n {
		if i%10 == 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		s.one()
	}
}

func (s *sender) start(rate int) {
	s.end = make(chan struct{})
	s.wait.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		start, n := time.Now(), 0
		for {
			select {
			case <-s.end:
				return
			case <-tick.C:
			}
			for due := int(time.Since(start).Seconds() * float64(rate)); n < due; n++ {
				s.one()
			}
		}
	})
}

// stop ends the steady stream.
func (s *sender) stop() {
	close(s.end)
	s.wait.Wait()
}
