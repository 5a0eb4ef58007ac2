package congestion

import (
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// fabric is a fat-tree. A pod has as many top-of-rack as aggregation switches, each connected to each, and an
// aggregation switch as many lines to the core. The paper's, which is that of HPCC, has 5 pods of 4 and 16 servers a
// rack: 16 core switches.
type fabric struct {
	pods, half int     // half: switches of a kind in a pod
	servers    int     // of a rack
	hostRate   float64 // bit/s
	coreRate   float64 // bit/s, of lines between switches
	delay      int64   // ps, of a line
}

// Ports of a fabric are numbered by kind. A top-of-rack switch has ports down to its servers and up to the aggregation,
// an aggregation switch down to the racks and up to the core, and a core switch one down to each pod.
func (s *simulation) connect() error {
	f := &s.fabric
	if f.pods < 1 || f.half < 1 || f.servers < 1 || f.pods*f.half*f.servers < 2 || f.hostRate <= 0 || f.coreRate <= 0 {
		return errors.New("a fabric needs pods, switches, two servers and rates")
	}
	racks := f.pods * f.half
	hosts := racks * f.servers
	ports := hosts + 4*racks*f.half
	if ports >= 1<<15 {
		return fmt.Errorf("a fabric of %d ports: want less than %d", ports, 1<<15)
	}
	line := func(rate float64) (*pint.Line, error) { return pint.NewLine(rate/8, time.Duration(s.rtt/nanosecond)) }
	edge, err := line(f.hostRate)
	if err != nil {
		return err
	}
	core, err := line(f.coreRate)
	if err != nil {
		return err
	}
	perByte := func(rate float64) int64 { return int64(8 * second / rate) }
	s.hosts = make([]simHost, hosts)
	for h := range s.hosts {
		s.hosts[h] = simHost{acks: queue{-1, -1}, perByte: perByte(f.hostRate)}
	}
	s.ports = make([]port, ports)
	for i := range s.ports {
		p := port{queue: queue{-1, -1}, perByte: perByte(f.coreRate), delay: f.delay, line: core}
		if i < hosts {
			p.perByte, p.line = perByte(f.hostRate), edge
		}
		s.ports[i] = p
	}
	return nil
}

// route returns the ports of a flow's packets, behind that of its host. Equal ways are chosen by a hash of the flow.
func (s *simulation) route(from, to int32, id uint64) (path [maxStamps]int16, links int8) {
	f := &s.fabric
	half, servers := int32(f.half), int32(f.servers)
	racks := int32(f.pods) * half
	hosts := racks * servers
	rackUp := hosts                     // + rack·half + aggregation of the pod
	aggDown := rackUp + racks*half      // + aggregation·half + rack of the pod
	aggUp := aggDown + racks*half       // + aggregation·half + line
	coreDown := aggUp + racks*half      // + core·pods + pod
	x := mixed64(id ^ uint64(from)<<48) // both directions differ
	up, over := int32(x%uint64(half)), int32(x>>32%uint64(half))
	a, b := from/servers, to/servers
	add := func(port int32) {
		path[links] = int16(port)
		links++
	}
	if a != b {
		add(rackUp + a*half + up)
		p, q := a/half, b/half
		if p != q {
			add(aggUp + (p*half+up)*half + over)
			add(coreDown + (up*half+over)*int32(f.pods) + q)
		}
		add(aggDown + (q*half+up)*half + b%half)
	}
	add(to)
	return path, links
}
