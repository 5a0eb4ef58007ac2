package rate

import (
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// reports returns n reports of five hops about 10 000 flows, as a collector reads them from datagrams a microsecond
// apart.
func reports(n int) ([]*decode.Report, error) {
	g, err := traffic.New(traffic.DefaultConfig())
	if err != nil {
		return nil, err
	}
	p, ok := demux.Lookup("auto")
	if !ok {
		return nil, fmt.Errorf("no profile auto")
	}
	d := demux.New(p)
	var b decode.Batch
	for i := range n {
		exporter := decode.AddrFrom4([]byte{192, 0, 2, byte(i%g.Exporters()) + 1})
		if d.Datagram(&b, exporter, g.Next(make([]byte, g.Bytes())), 1_700_000_000_000_000_000+int64(i)*1000) != 1 {
			return nil, fmt.Errorf("report %d was not read", i)
		}
	}
	for _, r := range b.Reports {
		if r.Err.Reason != 0 || len(r.Hops) != 5 {
			return nil, fmt.Errorf("a report of %d hops: %w", len(r.Hops), r.Error())
		}
		r.Unknown = nil
	}
	return b.Reports, nil
}

// demoReports returns at least n reports of the network of `hopscope demo`: stacks of different lengths, drops,
// queues and PINT digests.
func demoReports(n int) ([]*decode.Report, error) {
	cfg, err := scenario.PINTDemo()
	if err != nil {
		return nil, err
	}
	network, err := emu.New(cfg, 1)
	if err != nil {
		return nil, err
	}
	p, ok := demux.Lookup("auto")
	if !ok {
		return nil, fmt.Errorf("no profile auto")
	}
	d := demux.New(p)
	var b decode.Batch
	for until := time.Second; len(b.Reports) < n && until < time.Hour; until += time.Second {
		network.Run(until, func(g emu.Datagram) {
			d.Datagram(&b, decode.AddrFrom(g.From.Addr()), slices.Clone(g.Payload), 1_700_000_000_000_000_000+int64(g.At))
		})
	}
	return b.Reports, nil
}
