package findings

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/p4/emu"
)

// DemoCollector is the collector of "hopscope demo" without goroutines, with windows of a second. Other code runs the
// network.
type DemoCollector struct {
	pipe     *pipeline
	probes   *demux.Decoder
	port     int
	detector *events.Detector
	at       time.Duration // end of the last window
}

// NewDemoCollector makes the collector of a network that has not begun.
func NewDemoCollector(n *emu.Network, c *emu.Config) (*DemoCollector, error) {
	var a collector.Analysis
	a.SetDefaults()
	a.Flows.MemoryBytes, a.Flows.TopFlows, a.Events.Warmup, a.Events.LinkFloor = 64<<20, 400, 15, c.PacketTime()
	probes, ok := demux.Lookup("int-path")
	if !ok {
		return nil, fmt.Errorf("no profile called int-path")
	}
	p, err := newPipeline(&a, n, c.Plan, c.Epoch.UnixNano())
	if err != nil {
		return nil, err
	}
	return &DemoCollector{pipe: p, probes: demux.New(probes), port: int(c.ProbePort), detector: events.New(a.Events)}, nil
}

// Receive receives the reports of the network, and the probes where they leave it.
func (c *DemoCollector) Receive(d emu.Datagram) {
	if int(d.Port) == c.port {
		c.probes.Datagram(&c.pipe.batch, decode.AddrFrom(d.From.Addr()), d.Payload, c.pipe.epoch+int64(d.At))
		return
	}
	c.pipe.datagram(d)
}

// Window ends the window and returns it with the findings that began, changed or ended in it. Both are valid until
// the next one.
func (c *DemoCollector) Window(to time.Duration) (*inference.Window, []inference.Finding) {
	w := c.pipe.cut(c.at, to)
	c.at = to
	return &w, c.detector.Step(&w)
}
