package findings

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// A network whose lines few packets use is quiet with the default settings. Now and then a packet waits for one
// other, and flows come and go. Windows of a second have none, one or a few of their packets. Nothing of that is
// published.
func TestQuietNetworkReportsNothing(t *testing.T) {
	testkit.Long(t)
	for _, c := range []struct {
		packets float64 // a second, over 80 interfaces
		seed    uint64
	}{{400, 1}, {80, 2}} {
		cfg, err := scenario.PINTDemo()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Script, cfg.Repeat, cfg.PacketRate = nil, 0, c.packets
		n, err := emu.New(cfg, c.seed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPipeline(analysis(), n, cfg.Plan, cfg.Epoch.UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		var a collector.Analysis
		a.SetDefaults()
		j := newJudge(p.epoch, n)
		j.detector.Configure(a.Events)
		for at := time.Duration(0); at < 25*time.Minute; at += time.Second {
			n.Run(at+time.Second, p.datagram)
			w := p.cut(at, at+time.Second)
			j.window(&w)
		}
		if p.reports < 50_000 {
			t.Fatalf("%v packets a second: %d reports", c.packets, p.reports)
		}
		for _, id := range j.order {
			f := j.last[id]
			t.Errorf("%v packets a second, after %v: %s of %v: %s", c.packets, time.Duration(f.Start-p.epoch), f.Kind, f.Element, f.Text)
		}
	}
}
