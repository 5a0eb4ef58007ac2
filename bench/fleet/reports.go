package fleet

import (
	"fmt"

	"github.com/hopscope/hopscope/bench/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// Reports gives n reports of five hops about 10 000 flows, as a collector reads them from datagrams a microsecond apart.
func Reports(n int) ([]*decode.Report, error) {
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
