package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// patience bounds every wait for a condition.
const patience = testkit.Patience

// collector is a running "hopscope collect".
type collector struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   bytes.Buffer
	to    netip.AddrPort // report datagrams
	url   string         // of the page, without a slash at its end
	ended chan struct{}  // closed behind the last line of the log

	mu      sync.Mutex
	changed *sync.Cond
	log     []map[string]any
	over    bool
	sockets map[netip.Addr]*net.UDPConn
}

// start runs the collector with settings that name the addresses of udp and web as 127.0.0.1:0, in a directory of its own.
func start(t *testing.T, settings string) *collector {
	t.Helper()
	c := &collector{t: t, ended: make(chan struct{}), sockets: map[netip.Addr]*net.UDPConn{}}
	c.changed = sync.NewCond(&c.mu)
	c.cmd = command("collect", "--config", settings, "--format", "json")
	c.cmd.Dir = filepath.Dir(settings)
	c.cmd.Stdout = &c.out
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		for _, s := range c.sockets {
			s.Close()
		}
	})
	go func() {
		defer close(c.ended)
		s := bufio.NewScanner(stderr)
		for s.Scan() {
			line := map[string]any{}
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line["msg"] = s.Text()
			}
			c.mu.Lock()
			c.log = append(c.log, line)
			c.changed.Broadcast()
			c.mu.Unlock()
		}
		c.mu.Lock()
		c.over = true
		c.changed.Broadcast()
		c.mu.Unlock()
	}()
	c.to = netip.MustParseAddrPort(c.wait("receiving reports", 1)["address"].(string))
	c.url = strings.TrimSuffix(c.wait("serving the page", 1)["url"].(string), "/")
	if !testkit.Await(func() bool { // it opens its socket, and serves the page, before
		r, err := http.Get(c.url + "/readyz")
		if err != nil {
			return true // the page needs a client of its own
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && !strings.Contains(string(text), "not receiving")
	}) {
		t.Fatal("the collector does not begin to receive")
	}
	return c
}

// wait returns the nth line of the log with that message.
func (c *collector) wait(msg string, n int) map[string]any {
	c.t.Helper()
	late := time.AfterFunc(patience, func() {
		c.mu.Lock()
		c.over = true
		c.changed.Broadcast()
		c.mu.Unlock()
	})
	defer late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		seen := 0
		for _, line := range c.log {
			if line["msg"] == msg {
				if seen++; seen == n {
					return line
				}
			}
		}
		if c.over {
			c.t.Fatalf("the log has no %d. %q: %v", n, msg, c.log)
		}
		c.changed.Wait()
	}
}

// logText returns the log in lines of key=value, without times and without lines of these messages.
func (c *collector) logText(without ...string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, line := range c.log {
		if slices.Contains(without, fmt.Sprint(line["msg"])) {
			continue
		}
		fmt.Fprintf(&b, "%v %v", line["level"], line["msg"])
		for _, k := range slices.Sorted(maps.Keys(line)) {
			if k != "level" && k != "msg" && k != "time" {
				fmt.Fprintf(&b, " %s=%v", k, line[k])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// send sends the UDP payloads of Ethernet frames, each from its own source address in 127.0.0.0/8, and waits until the
// collector has read them all. Order holds within a socket, but there is one for every exporter.
func (c *collector) send(frames []frame) {
	c.t.Helper()
	before := c.metric("hopscope_udp_datagrams_total")
	for _, f := range frames {
		from := netip.AddrFrom4([4]byte(f.data[26:30]))
		if !from.IsLoopback() {
			a := from.As4()
			from = netip.AddrFrom4([4]byte{127, a[1], a[2], a[3]})
		}
		s := c.sockets[from]
		if s == nil {
			var err error
			if s, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(c.to)); err != nil {
				c.t.Fatal(err)
			}
			c.sockets[from] = s
		}
		if _, err := s.Write(f.data[42:]); err != nil {
			c.t.Fatal(err)
		}
	}
	c.until(fmt.Sprintf("%d datagrams", len(frames)), func() bool {
		return c.metric("hopscope_udp_datagrams_total") == before+float64(len(frames))
	})
}

// until waits for a condition.
func (c *collector) until(what string, holds func() bool) {
	c.t.Helper()
	if !testkit.Await(holds) {
		c.t.Fatalf("waited in vain for %s", what)
	}
}

// get asks for a path of the page.
func (c *collector) get(path string) (status int, body string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// metric returns one value of /metrics, by its name with labels; 0 if it is not there.
func (c *collector) metric(name string) float64 {
	c.t.Helper()
	_, body := c.get("/metrics")
	for line := range strings.Lines(body) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			var n float64
			if _, err := fmt.Sscan(v, &n); err != nil {
				c.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// json reads an answer of the page into v.
func (c *collector) json(path string, v any) {
	c.t.Helper()
	if status, body := c.get(path); status != http.StatusOK {
		c.t.Fatalf("%s: status %d: %s", path, status, body)
	} else if err := json.Unmarshal([]byte(body), v); err != nil {
		c.t.Fatalf("%s: %v in %s", path, err, body)
	}
}

// windows returns the reports of every window that the page keeps.
func (c *collector) windows() []uint64 {
	c.t.Helper()
	var got struct{ Reports []uint64 }
	c.json("/api/windows", &got)
	return got.Reports
}

// nextWindow waits until a window has just ended.
func (c *collector) nextWindow() {
	c.t.Helper()
	n := len(c.windows())
	c.until("the end of a window", func() bool { return len(c.windows()) > n })
}

// stop sends SIGTERM and returns the exit status; the summary is in c.out then.
func (c *collector) stop() int {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	<-c.ended
	err := c.cmd.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	return 0
}
