package otlp

import (
	"strings"
	"sync"

	"github.com/hopscope/hopscope/decode"
)

// Config holds the rules and bounds for reading metrics.
type Config struct {
	Rules []Rule // the first that matches a point counts
	// Nodes are the attributes of a resource, or of a point, that can name the node; the first that is there does.
	// Where none is, the node is that of the sender's address.
	Nodes []string
	// MemoryBytes bounds the state of streams.
	MemoryBytes int64
	Seed        uint64 // of the hash of streams
	// Since is when this process began to receive, in ns since 1970. Of a stream that began before, another one may
	// have counted a part.
	Since int64
	// Speed returns the speed in bit/s of an interface that no metric reports, 0 if it is unknown. The node id is
	// that of the exporter. Nil stands for no known speeds.
	Speed func(exporter decode.Addr, node, index uint32) float64
	// Units are those of the reports, with the names of drop reasons.
	Units *decode.Units
}

// Decoder reads requests. It is for one goroutine, but for Learned and Unread.
type Decoder struct {
	cfg     Config
	rules   rules
	key     decode.HashKey
	streams streams
	ports   map[portKey]*port

	requests uint64 // number of the one at hand

	data  []byte
	time  int64
	src   decode.Addr
	out   *decode.Batch
	full  func()
	got   Result
	p     point
	attrs []attribute // of the resource, and behind them of the point
	own   int         // how many are of the resource
	owner uint64      // hash of those

	restart uint64 // start of the sum that began anew last, ns since 1970

	within  message // the resource at hand
	ahead   bool    // it is read ahead of its points, for one that fell
	asked   uint64  // with this start, last; the next two are its place
	askedAt int
	askedIn uint64
	asks    int // of that request

	mu      sync.Mutex
	learned []Port
	unread  map[string]*Unread
	names   int // of ports that were reported
}

// Result counts the points of a request by outcome.
type Result struct {
	Points  int
	Foreign int                    // that no rule reads, or that are of no statistic
	Refused [decode.NumReasons]int // by reason
	Resets  int                    // at which a counter or a histogram was found to have begun anew
}

// Port is the description of an interface.
type Port struct {
	Node  uint32
	Host  string // name or address of the node
	Index uint32
	Name  string  // of the interface, empty for the node alone
	Speed float64 // bit/s; 0 where unknown
}

// Unread is a metric of which nothing is counted.
type Unread struct {
	Points uint64
	Why    string // the rule's reason; empty without a rule
}

// port is an interface with its counts.
type port struct {
	Port
	counters
}

type portKey struct{ node, index uint32 }

const (
	mostPorts  = 1 << 14 // that are remembered
	mostUnread = 256     // names of metrics that no rule reads
	mostName   = 200     // bytes of one
)

// New makes a decoder.
func New(cfg Config) *Decoder {
	if cfg.Units == nil {
		cfg.Units = &decode.DefaultUnits
	}
	return &Decoder{
		cfg: cfg, rules: rules{cfg.Rules, map[string][]*Rule{}}, key: decode.NewHashKey(cfg.Seed), ports: map[portKey]*port{},
		streams: streams{most: cfg.MemoryBytes, byKey: map[uint64]*stream{}}, unread: map[string]*Unread{},
	}
}

// Read reads a request of a sender and appends a report for each point that a rule reads to b. It calls full after
// each of them, so that b need not grow. A broken request has no points, one report with the place of the error, and
// a result of zeros.
func (d *Decoder) Read(b *decode.Batch, src decode.Addr, data []byte, time int64, full func()) Result {
	d.data, d.time, d.src, d.out, d.full, d.got = data, time, src, b, full, Result{}
	d.requests++
	if _, err := Points(data); err != nil {
		d.next(0, err.Offset).Err = *err
		d.full()
		return d.got
	}
	m := message{data: data, end: len(data)}
	for f := (field{}); m.next(&f); {
		if f.is(1, bytes) {
			d.resource(m.in(&f))
		}
	}
	d.data, d.out, d.full = nil, nil, nil
	return d.got
}

// resource reads the metrics of one resource, which is a switch.
func (d *Decoder) resource(m message) {
	d.within = m
	d.attrs, d.own = d.attrs[:0], 0
	for at, f := m, (field{}); at.next(&f); {
		if !f.is(1, bytes) {
			continue
		}
		r := at.in(&f)
		for f := (field{}); r.next(&f); {
			if f.is(1, bytes) {
				add(&d.attrs, r.in(&f)) // those without room are not looked for
			}
		}
	}
	d.own, d.owner = len(d.attrs), d.hashOf(d.attrs)
	for f := (field{}); m.next(&f); {
		if !f.is(2, bytes) {
			continue
		}
		scope := m.in(&f)
		for f := (field{}); scope.next(&f); {
			if f.is(2, bytes) {
				d.metric(scope.in(&f))
			}
		}
	}
}

// metric reads the points of one metric.
func (d *Decoder) metric(m message) {
	var name []byte
	for at, f := m, (field{}); at.next(&f); {
		if f.is(1, bytes) {
			name = at.data[f.from:f.to]
		}
	}
	found := d.rules.find(name)
	unread, why := 0, ""
	for f := (field{}); m.next(&f); {
		k, ok := parts[metric][f.num]
		if !ok || f.typ != bytes {
			continue
		}
		data, temporality := m.in(&f), uint64(0)
		for at, f := data, (field{}); at.next(&f); {
			if f.is(2, varint) && k != gauge && k != summary {
				temporality = f.v
			}
		}
		for f := (field{}); data.next(&f); {
			if !f.is(1, bytes) {
				continue
			}
			d.got.Points++
			d.p.reset(f.from, k, temporality == 1)
			if counted, because := d.point(name, found, data.in(&f)); !counted {
				unread, why = unread+1, because
			}
		}
	}
	if unread > 0 && !d.ahead {
		d.notRead(name, why, unread)
	}
}

// point reads one point. It is false for one that is not counted and has to be listed, with the reason if a rule has one.
func (d *Decoder) point(name []byte, found []*Rule, m message) (ok bool, why string) {
	p := &d.p
	d.attrs = d.attrs[:d.own]
	if len(found) == 0 {
		d.got.Foreign++
		return false, ""
	}
	if reason := p.read(d, m); reason != 0 {
		d.refuse(p, reason)
		return true, ""
	}
	for _, r := range found {
		if !r.matches(d.attrs) {
			continue
		}
		if r.Statistic == None {
			d.got.Foreign++
			return r.Why == "", r.Why
		}
		at, reason := d.placeOf(r)
		if reason == 0 {
			reason = d.emit(r, name, &at)
		}
		if reason != 0 {
			d.refuse(p, reason)
		}
		return true, ""
	}
	d.got.Foreign++
	return false, ""
}

// place is the subject of a point: node, interface and queue.
type place struct {
	node  uint32
	port  *port // nil for all of the node
	queue int   // -1 for none
}

// placeOf finds node, interface and queue of the point at hand.
func (d *Decoder) placeOf(r *Rule) (at place, reason decode.Reason) {
	at.queue = -1
	host := ""
	for _, key := range d.cfg.Nodes {
		if a := find(d.attrs, key); a != nil && a.value() != "" {
			host = a.value()
			break
		}
	}
	if host == "" {
		at.node, host = d.src.Node(), d.src.String()
	} else {
		at.node = nodeOf(host)
	}
	if r.Queue != "" {
		if a := find(d.attrs, r.Queue); a != nil {
			at.queue = queueOf(a.value())
		}
	}
	if r.Interface == "" {
		return at, 0
	}
	name := find(d.attrs, r.Interface).value()
	if r.Joint {
		if port, queue, ok := strings.Cut(name, "|"); ok {
			name, at.queue = port, queueOf(queue)
		}
	}
	if name == "" {
		return at, decode.BadValue
	}
	at.port = d.portAt(at.node, host, name)
	if at.port == nil {
		return at, decode.NoRoom
	}
	if at.port.Name != name && at.port.Name != "" {
		return at, decode.BadValue // two names have one number
	}
	return at, 0
}

// portAt returns the interface of a node, nil if there is no place for another one.
func (d *Decoder) portAt(node uint32, host, name string) *port {
	key := portKey{node, portOf(name)}
	x := d.ports[key]
	if x == nil && len(d.ports) < mostPorts {
		x = &port{Port: Port{Node: node, Host: host, Index: key.index}}
		if name = strings.Clone(name); portOf(name) >= named {
			x.Name = name
		}
		d.ports[key] = x
		d.learn(&x.Port)
	}
	return x
}

func (d *Decoder) learn(x *Port) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names++; d.names <= 2*mostPorts {
		d.learned = append(d.learned, *x)
	}
}

// Learned returns the properties of interfaces that points reported since the last call. Any goroutine may call it.
func (d *Decoder) Learned() (list []Port) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, d.learned = d.learned, nil
	return list
}

// notRead counts points of a metric that are not counted.
func (d *Decoder) notRead(name []byte, why string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(name[:min(len(name), mostName)])
	x := d.unread[key]
	if x == nil && len(d.unread) >= mostUnread {
		key, why = "", ""
		x = d.unread[key]
	}
	if x == nil {
		x = &Unread{}
		d.unread[key] = x
	}
	x.Points, x.Why = x.Points+uint64(n), why
}

// Unread returns the metrics of which nothing is counted by their names; "" is for further ones. Any goroutine may
// call it.
func (d *Decoder) Unread(f func(metric string, x Unread)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, x := range d.unread {
		f(name, *x)
	}
}

// queueOf is the number of a queue, -1 if the text is none.
func queueOf(text string) int {
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 255 {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	if text == "" || n > 254 {
		return -1
	}
	return n
}

// next appends a report.
func (d *Decoder) next(kind decode.Kind, at int) *decode.Report {
	r := d.out.Next()
	r.Time, r.Format, r.Kind, r.Units, r.Exporter = d.time, decode.OTLP, kind, d.cfg.Units, d.src
	r.Has = decode.HasExporter
	return r
}

func (d *Decoder) refuse(p *point, reason decode.Reason) {
	if d.ahead {
		return
	}
	d.got.Refused[reason]++
	d.next(0, p.at).Fail(decode.OTLP, p.wrong, p.at, reason)
	d.full()
}
