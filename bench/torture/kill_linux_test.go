//go:build torture

package torture

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

const rate = 2000 // reports a second, of all rows that do not say otherwise

func killRows() []row {
	times := short(4, 40)
	killStore := func(version string, times int) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			server := startStore(t, version)
			p := newPlace(t, placeOptions{server: server})
			c := p.start()
			s := newSender(t, p.udp)
			s.start(rate)
			for range times {
				time.Sleep(moment(200*time.Millisecond, 700*time.Millisecond))
				server.Kill()
				time.Sleep(moment(0, 300*time.Millisecond))
				server.Start()
			}
			s.stop()
			s.trailer()
			c.drained()
			c.stop()
			p.balance(r, s.sent.Load(), true)
		}
	}
	var rows []row
	if long { // an InfluxDB 1.8 takes half a minute for an orderly end, which it needs after each kill
		rows = append(rows, row{name: "kill -9 of InfluxDB " + servertest.Influx1, run: killStore(servertest.Influx1, 10)})
	}
	return append(rows, []row{
		{name: "kill -9 of InfluxDB " + servertest.Influx2, run: killStore(servertest.Influx2, times)},
		{name: "kill -9 of the collector", run: func(t *testing.T, r *result) {
			p := newPlace(t, placeOptions{server: startStore(t, servertest.Influx2)})
			c := p.start()
			s := newSender(t, p.udp)
			s.start(rate)
			p.remembers()
			for range times {
				time.Sleep(moment(600*time.Millisecond, 1100*time.Millisecond))
				c.kill()
				time.Sleep(moment(0, 100*time.Millisecond))
				c = p.start()
			}
			time.Sleep(time.Second)
			s.stop()
			s.trailer()
			c.drained()
			c.stop()
			p.balance(r, s.sent.Load(), true)
		}},
		{name: "kill -9 of both", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			p := newPlace(t, placeOptions{server: server})
			c := p.start()
			s := newSender(t, p.udp)
			s.start(rate)
			p.remembers()
			for range times {
				time.Sleep(moment(600*time.Millisecond, 1100*time.Millisecond))
				if rng.IntN(2) == 0 {
					server.Kill()
					c.kill()
				} else {
					c.kill()
					server.Kill()
				}
				c = p.start()
				time.Sleep(moment(0, 500*time.Millisecond))
				server.Start()
			}
			time.Sleep(time.Second)
			s.stop()
			s.trailer()
			c.drained()
			c.stop()
			p.balance(r, s.sent.Load(), true)
		}},
		{name: "SIGTERM while the store is away", run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			p := newPlace(t, placeOptions{server: server})
			c := p.start()
			s := newSender(t, p.udp)
			for range short(2, 20) {
				s.send(1000, rate)
				server.Kill()
				s.send(1000, rate)
				time.Sleep(100 * time.Millisecond)
				c.stop()
				c = p.start()
				s.send(500, rate)
				server.Start()
			}
			s.trailer()
			c.drained()
			c.stop()
			p.balance(r, s.sent.Load(), true)
		}},
	}...)
}

// remembers waits until the collector's state on disk has the exporters' sequence numbers, from which a lost window
// is counted. A loss in the very first run before that stays unknown.
func (p *place) remembers() {
	p.t.Helper()
	name := filepath.Join(p.spoolDir(), "collector.state")
	waitFor(p.t, 2*time.Minute, "numbers of exporters in "+name, func() bool {
		b, err := os.ReadFile(name)
		const head = 8 + 4 + 4 // magic, length and checksum
		if err != nil || len(b) < head {
			return false
		}
		var state struct{ Before struct{ Exporters []byte } }
		return json.Unmarshal(b[head:], &state) == nil && len(state.Before.Exporters) > 0
	})
}
