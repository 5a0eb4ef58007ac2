package program

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4"
)

// Frame is a frame and the port that it comes by or leaves by.
type Frame struct {
	Port  uint16
	Bytes []byte
}

// Pass holds the values that a switch measures on a packet's way to its egress. Times are microseconds since its start;
// those of ingress and egress are nanoseconds on a switch that counts these ([Switch.CountNanoseconds]).
type Pass struct {
	Instance     uint32 // as that of the packet
	IngressPort  uint16
	EgressPort   uint16
	PacketLength uint32
	IngressTime  uint64 // of a clone of an ingress, too: when the packet came
	EgressTime   uint64
	EnqueueTime  uint32
	EnqueueDepth uint32 // packets
	QueueDelay   uint32
	DequeueDepth uint32
	Shown        *Shown // nil on BMv2
}

// Shown is what v1model does not show to a program, and blocks of INT have a place for.
type Shown struct {
	Utilization uint32            // of the line
	Buffer      uint32            // its id in the highest byte, and its occupancy
	Counts      *decode.HopCounts // of the interface, for FANT; nil for none
}

// Kinds of passes.
const (
	normal uint32 = iota
	ingressClone
	egressClone
)

// dropPort is where packets go that go nowhere.
const dropPort = 511

// errPass is the error of a frame that goes another way than the measured passes.
var errPass = errors.New("no such pass was measured")

// Switch runs one program.
type Switch struct {
	program  code
	tables   *p4.Store
	schema   map[string]*p4.Table
	mirrors  map[uint32]uint16 // ports of sessions
	sequence map[uint32]uint32 // of reports, by collector and hardware id

	device, collector, forwarding4, forwarding6 *p4.Rows // which programs share
	place                                       Place    // in place of entries; nil for none

	// Now is the time of the frame that comes, us, by which rft holds paths to their rates.
	Now uint64

	tick     uint64 // ns, of its clock
	wrap     uint64 // the greatest time
	packet   Packet // of Process
	passes   []Pass
	returned []byte // the head of a report that comes back
}

// code is a program. Its state is that of the program's registers.
type code interface {
	tables() []p4.Table
	defaults() []p4.Entry
	bind(*p4.Store)                                   // remembers its tables
	ingress(s *Switch, p *Packet, head []byte) bool   // false if nothing leaves
	egress(s *Switch, p *Packet, measured *Pass) bool // the same
}

// Part is a part of hopscope.p4 that can be left out when it is compiled.
type Part uint8

// These parts can be left out.
const (
	INT    Part = 1 + iota // without it INT is payload (-DWITH_INT=0)
	Blocks                 // without it INT is read, and left to others to write
)

// New makes a switch that runs hopscope, srint, intmd, into, rft or pint, with empty tables. Parts are left out of hopscope.
func New(program string, without ...Part) (*Switch, error) {
	s := &Switch{tick: 1000, wrap: 1<<48 - 1, schema: map[string]*p4.Table{}, mirrors: map[uint32]uint16{}, sequence: map[uint32]uint32{}}
	switch program {
	case "srint":
		s.program = &srint{}
	case "intmd":
		s.program = &intmd{reported: map[int32]uint64{}}
	case "into":
		s.program = &intmd{reported: map[int32]uint64{}, into: true}
	case "rft":
		s.program = &intmd{reported: map[int32]uint64{}, into: true, rft: newDeliveries()}
	case "pint":
		s.program = newPINT()
	case "hopscope":
		s.program = newHopscope(without)
	default:
		return nil, fmt.Errorf("program %q: there are hopscope, srint, intmd, into, rft and pint", program)
	}
	list := s.program.tables()
	for i := range list {
		s.schema[list[i].Name] = &list[i]
	}
	s.tables = p4.NewStore(list)
	for _, e := range s.program.defaults() {
		if _, err := s.tables.Put(e); err != nil {
			return nil, err
		}
	}
	s.program.bind(s.tables)
	s.device, s.collector = s.tables.Rows("egress.device"), s.tables.Rows(collectorTable.Name)
	s.forwarding4, s.forwarding6 = s.tables.Rows(forwarding4), s.tables.Rows(forwarding6)
	return s, nil
}

// Put writes an entry.
func (s *Switch) Put(e p4.Entry) error {
	_, err := s.tables.Put(e)
	return err
}

// Tables are the tables of its program.
func (s *Switch) Tables() []p4.Table { return s.program.tables() }

// Store returns what they hold. A write there is a write to the switch.
func (s *Switch) Store() *p4.Store { return s.tables }

// CountNanoseconds makes the switch's clock finer than that of BMv2.
func (s *Switch) CountNanoseconds() { s.tick, s.wrap = 1, math.MaxUint64 }

// Mirror lets clones of a session leave by a port.
func (s *Switch) Mirror(session uint32, port uint16) { s.mirrors[session] = port }

// Ingress takes a frame that comes by a port: its head, and its length. The head has all headers; it is copied. It
// reports whether something leaves: the packet, or a clone of it ([Packet].Instance), by the queue of p.Port.
func (s *Switch) Ingress(p *Packet, port uint16, head []byte, length int) bool {
	p.begin(port, head, length)
	return s.program.ingress(s, p, head)
}

// Leaves is the length that a packet in the queue of hopscope.p4 will leave with, but for labels and digests that its
// egress adds. Nothing that is measured changes it.
func (s *Switch) Leaves(p *Packet) int {
	c, ok := s.program.(*hopscope)
	if !ok {
		return p.size()
	}
	return p.size() + c.grows(s, p)
}

// Egress is the rest of the program, with what was measured of p in its queue. It reports whether a frame leaves, which
// is in p.Head and p.Length then.
func (s *Switch) Egress(p *Packet, measured *Pass) bool {
	p.Head, p.Length = p.Head[:0], 0
	return s.program.egress(s, p, measured)
}

// Clone makes p the clone that its egress made, or the report that came back from there, on its way to the queue of p.Port.
// It is false if there is none.
func (s *Switch) Clone(p *Packet) bool {
	if p.returned {
		s.returned = append(s.returned[:0], p.Head...)
		p.begin(0, s.returned, p.Length)
		p.meta.own = true
		return s.program.ingress(s, p, s.returned)
	}
	if !p.cloned {
		return false
	}
	p.cloned = false
	to, ok := s.mirrors[p.session]
	p.Instance, p.Port = egressClone, to
	return ok
}

// Process returns the frames that leave the switch because of a frame, in order. The passes are what the switch
// measured meanwhile. Unused passes are returned for later frames.
func (s *Switch) Process(in Frame, passes []Pass) (out []Frame, left []Pass, err error) {
	s.passes = append(s.passes[:0], passes...)
	p := &s.packet
	s.arrive()
	for more := s.Ingress(p, in.Port, in.Bytes, len(in.Bytes)); more; more = s.Clone(p) {
		pass, err := s.next(p.Instance)
		if err != nil {
			return nil, nil, err
		}
		s.arrive()
		if port := p.Port; s.Egress(p, &pass) {
			out = append(out, Frame{port, bytes.Clone(p.Head)})
		}
	}
	return out, slices.Clone(s.passes), nil
}

// arrive sets the time of a packet that comes, if its pass was measured.
func (s *Switch) arrive() {
	if i := s.pending(normal); i >= 0 {
		s.Now = s.passes[i].IngressTime
	}
}

// pending is the index of the next pass of a kind, -1 for none.
func (s *Switch) pending(instance uint32) int {
	return slices.IndexFunc(s.passes, func(p Pass) bool { return p.Instance == instance })
}

// next returns the next pass of a kind.
func (s *Switch) next(instance uint32) (Pass, error) {
	i := s.pending(instance)
	if i < 0 {
		return Pass{}, fmt.Errorf("instance %d: %w", instance, errPass)
	}
	p := s.passes[i]
	s.passes = slices.Delete(s.passes, i, i+1)
	return p, nil
}

func num(v uint64) p4.Value { return p4.Uint(v) }

// entry is a default action.
func fallback(name, action string, params ...uint64) p4.Entry {
	e := p4.Entry{Table: name, Action: action}
	for _, p := range params {
		e.Params = append(e.Params, num(p))
	}
	return e
}

// act and exact are short for what most tables have.
func act(name string, bits ...int) p4.Action {
	a := p4.Action{Name: name}
	for i, b := range bits {
		a.Params = append(a.Params, p4.Param{Name: strconv.Itoa(i), Bits: b})
	}
	return a
}

func field(name string, bits int, kind p4.Kind) p4.Field {
	return p4.Field{Name: name, Bits: bits, Kind: kind}
}

// Command runs a line of simple_switch_CLI: table_add, table_set_default or mirroring_add. An empty line is none.
func (s *Switch) Command(line string) error {
	words := strings.Fields(line)
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%q: %s", line, fmt.Sprintf(format, args...))
	}
	if len(words) == 0 {
		return nil
	}
	if len(words) < 3 {
		return bad("too short")
	}
	switch words[0] {
	case "mirroring_add":
		id, err := strconv.ParseUint(words[1], 0, 15)
		port, err2 := strconv.ParseUint(words[2], 0, 9)
		if err := errors.Join(err, err2); err != nil {
			return bad("%v", err)
		}
		s.mirrors[uint32(id)] = uint16(port)
		return nil
	case "table_add", "table_set_default":
	default:
		return bad("unknown command")
	}
	t := s.schema[words[1]]
	if t == nil {
		return bad("the program has no such table")
	}
	e := p4.Entry{Table: t.Name, Action: words[2][strings.LastIndexByte(words[2], '.')+1:]}
	rest := words[3:]
	if words[0] == "table_add" {
		arrow := slices.Index(rest, "=>")
		if arrow != len(t.Key) {
			return bad("a key of %d fields, want %d", arrow, len(t.Key))
		}
		ordered := false
		for i, w := range rest[:arrow] {
			m, err := parseMatch(w, &t.Key[i])
			if err != nil {
				return bad("%v", err)
			}
			e.Match = append(e.Match, m)
			ordered = ordered || t.Key[i].Kind >= p4.Ternary
		}
		rest = rest[arrow+1:]
		if ordered { // the least comes first there, and the greatest in P4Runtime
			if len(rest) == 0 {
				return bad("no priority")
			}
			p, err := strconv.ParseInt(rest[len(rest)-1], 0, 32)
			if err != nil {
				return bad("%v", err)
			}
			e.Priority, rest = int32(math.MaxInt32-p), rest[:len(rest)-1]
		}
	}
	for _, w := range rest {
		v, err := parseNumber(w)
		if err != nil {
			return bad("%v", err)
		}
		e.Params = append(e.Params, v)
	}
	if err := s.Put(e); err != nil {
		return bad("%v", err)
	}
	return nil
}

// parseNumber reads a number or an address.
func parseNumber(w string) (p4.Value, error) {
	if n, err := strconv.ParseUint(w, 0, 64); err == nil {
		return num(n), nil
	}
	if n, ok := new(big.Int).SetString(w, 0); ok && n.Sign() >= 0 {
		return p4.Bytes(n.Bytes()), nil
	}
	a, err := netip.ParseAddr(w)
	if err != nil {
		return "", fmt.Errorf("%q is neither a number nor an address", w)
	}
	return p4.Bytes(a.AsSlice()), nil
}

func parseMatch(w string, f *p4.Field) (m p4.Match, err error) {
	value, second := w, ""
	switch f.Kind {
	case p4.Longest:
		value, second, _ = strings.Cut(w, "/")
		if m.Prefix, err = strconv.Atoi(second); err != nil {
			return m, err
		}
		second = ""
	case p4.Ternary:
		value, second, _ = strings.Cut(w, "&&&")
	case p4.Range:
		value, second, _ = strings.Cut(w, "->")
	}
	if m.Value, err = parseNumber(value); err != nil {
		return m, err
	}
	if f.Kind >= p4.Ternary {
		m.To, err = parseNumber(second)
	}
	return m, err
}
