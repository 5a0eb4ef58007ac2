package rate

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/collector/traffic"
)

// netflow5 makes NetFlow v5 datagrams of one record, the smallest thing that flow collectors read.
type netflow5 struct {
	exporters int
	seq       []uint32
	flow      uint32
	template  [24 + 48]byte
}

var _ traffic.Datagrams = (*netflow5)(nil)

func newNetflow5(exporters int) *netflow5 {
	n := &netflow5{exporters: exporters, seq: make([]uint32, exporters)}
	be, b := binary.BigEndian, n.template[:]
	be.PutUint16(b[0:], 5)
	be.PutUint16(b[2:], 1)
	be.PutUint32(b[4:], 3_600_000)     // uptime, ms
	be.PutUint32(b[8:], 1_700_000_000) // seconds since 1970
	r := b[24:]
	be.PutUint32(r[4:], 172<<24|16<<16|1)
	be.PutUint32(r[8:], 192<<24|2<<8|1) // next hop
	be.PutUint16(r[12:], 1)             // interfaces
	be.PutUint16(r[14:], 2)
	be.PutUint32(r[16:], 10)   // packets
	be.PutUint32(r[20:], 6400) // bytes
	be.PutUint32(r[24:], 3_599_000)
	be.PutUint32(r[28:], 3_599_900)
	be.PutUint16(r[34:], 443)
	r[38] = 17
	r[44], r[45] = 24, 24 // prefix lengths
	return n
}

func (n *netflow5) Exporters() int { return n.exporters }

func (n *netflow5) Bytes() int { return len(n.template) }

func (n *netflow5) NextFrom(exporter int, buf []byte) []byte {
	be := binary.BigEndian
	buf = append(buf[:0], n.template[:]...)
	be.PutUint32(buf[16:], n.seq[exporter]) // counts records
	n.seq[exporter]++
	n.flow = n.flow*1664525 + 1013904223
	be.PutUint32(buf[24:], 10<<24|n.flow>>8)
	be.PutUint16(buf[24+32:], uint16(1024+n.flow>>17))
	return buf
}
