//go:build torture

package torture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/servertest"
)

const (
	others    = 200_000
	floodRate = 20_000 // datagrams a second
)

// flood sends garbage, damaged reports and good ones of made-up flows and nodes from forged addresses 127.1.0.0 and up,
// until done is closed.
func flood(t *testing.T, to netip.AddrPort, done <-chan struct{}) (sent int64) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close()
	cfg := traffic.Config{Seed: 7, Flows: 1 << 16, Hops: 5, Exporters: 64, Bytes: 200}
	good, err := traffic.New(cfg)
	if err != nil {
		t.Error(err)
		return 0
	}
	noise, err := traffic.NewNoise(cfg)
	if err != nil {
		t.Error(err)
		return 0
	}
	p := ipv4.NewPacketConn(c)
	addr := net.UDPAddrFromAddrPort(to)
	random := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 0, 256)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; {
		select {
		case <-done:
			return sent
		case <-tick.C:
		}
		for due := int64(time.Since(start).Seconds() * floodRate); sent < due; sent++ {
			var d []byte
			if exporter := random.IntN(64); random.IntN(4) == 0 {
				d = noise.NextFrom(exporter, buf)
			} else {
				d = good.NextFrom(exporter, buf)
				for i := 8; i < 150; i++ { // other nodes, flows and numbers
					if random.IntN(30) == 0 {
						d[i] ^= byte(random.Uint32())
					}
				}
			}
			s := random.IntN(others)
			if _, err := p.WriteTo(d, &ipv4.ControlMessage{Src: net.IPv4(127, byte(1+s>>16), byte(s>>8), byte(s))}, addr); err != nil {
				t.Errorf("sending from a forged address: %v", err)
				return sent
			}
		}
	}
}

// allowed is the memory that the settings allow, by the output of the program's "config check".
func (p *place) allowed() int64 {
	p.t.Helper()
	c := exec.Command(program, "config", "check", p.config())
	c.Dir, c.Env = p.dir, append(os.Environ(), tokenEnv+"="+p.opt.server.Token)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		p.t.Fatalf("config check: %v\n%s", err, out.String())
	}
	m := regexp.MustCompile(`memory: (\d+) (MB|MiB) at most`).FindStringSubmatch(out.String())
	if m == nil {
		p.t.Errorf("config check does not say how much memory the settings allow:\n%s", out.String())
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	if m[2] == "MiB" {
		return n << 20
	}
	return n * 1_000_000
}

// floodRows hold a proven exporter and the memory against strangers.
func floodRows() []row {
	duration := short(8*time.Second, 10*time.Minute)
	name := fmt.Sprintf("flood: %d datagrams/s of %d strangers for %v beside a proven exporter", floodRate, others, duration)
	return []row{{name: name, alone: true, run: func(t *testing.T, r *result) {
		server := startStore(t, servertest.Influx2)
		p := newPlace(t, placeOptions{server: server, window: "1s", settings: "flows:\n  memory_bytes: 16777216\n"})
		limit := p.allowed()
		c := p.start()
		s := newSender(t, p.udp)
		s.send(4000, 1000) // proves itself
		done := make(chan struct{})
		var noise sync.WaitGroup
		var forged int64
		noise.Go(func() { forged = flood(t, p.udp, done) })
		s.start(1000)
		time.Sleep(duration)
		close(done)
		noise.Wait()
		time.Sleep(time.Second)
		s.stop()
		s.trailer()
		time.Sleep(time.Second)
		c.drained()
		peak := c.peak()
		sum := c.stop()
		r.Sent = s.sent.Load()
		rows := server.MustQuery(`from(bucket: BUCKET) |> range(start: -1d) |> filter(fn: (r) => r._measurement == "exporter" and r.address == "127.0.0.1" and (r._field == "reports" or r._field == "lost"))`)
		for _, row := range rows {
			if n := row["_value"].(int64); row["_field"] == "reports" {
				r.Stored += n
			} else {
				r.Lost["on the way"] += n
			}
		}
		r.settle()
		for _, e := range sum.Exporters {
			if e.Address == "127.0.0.1" && e.Restarts != 0 {
				t.Errorf("the proven exporter %d restarted %d times", e.NodeID, e.Restarts)
			}
		}
		series := server.MustQuery(`import "influxdata/influxdb/schema" schema.tagValues(bucket: BUCKET, tag: "address", start: -1d)`)
		r.Remark = fmt.Sprintf("%d forged datagrams; RSS %d MB of %d MB allowed; %d addresses in the store", forged, peak>>20, limit>>20, len(series))
		if peak > limit {
			t.Errorf("RSS was %d bytes, the settings allow %d", peak, limit)
		}
	}}}
}
