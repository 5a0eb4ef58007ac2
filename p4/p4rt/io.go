package p4rt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4"
)

// Packet is a packet between switch and controller. Metadata are the fields of the program's header for such packets, by id.
type Packet struct {
	Payload  []byte
	Metadata map[uint32]p4.Value
}

// Digest is a list of the messages that a program sent with a digest.
type Digest struct {
	Name string   // "" for one that the program does not have
	List uint64   // its number
	Time int64    // ns, by the clock of the switch
	data [][]byte // P4Data, each in protocol buffers
}

// counter is one cell of a counter.
type counter struct{ Index, Packets, Bytes int64 }

// digestConfig is a switch's configuration for digests. Times are nanoseconds.
type digestConfig struct {
	maxTimeout int64
	maxList    int32
	ackTimeout int64
}

const (
	maxMetadata = 64
	maxCells    = 1 << 20
)

func packetOf(m *p4pb.PacketIn) Packet {
	p := Packet{Payload: m.GetPayload()}
	for i, x := range m.GetMetadata() {
		if i == maxMetadata {
			break
		}
		if p.Metadata == nil {
			p.Metadata = map[uint32]p4.Value{}
		}
		p.Metadata[x.GetMetadataId()] = p4.Bytes(x.GetValue())
	}
	return p
}

// queue keeps what came for the functions of the settings.
func (c *Client) queue(what any) {
	select {
	case c.inbox <- what:
	default:
		c.dropped.Add(1)
	}
}

// deliver calls the functions of the settings.
func (c *Client) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case what := <-c.inbox:
			switch m := what.(type) {
			case Packet:
				if c.cfg.onPacket != nil {
					c.cfg.onPacket(m)
				}
			case *p4pb.DigestList:
				c.digest(m)
			}
		}
	}
}

// digest hands a digest over, and acknowledges it: what is not acknowledged the switch sends again.
func (c *Client) digest(m *p4pb.DigestList) {
	d := Digest{List: m.GetListId(), Time: m.GetTimestamp()}
	for name, id := range c.info.digests {
		if id == m.GetDigestId() {
			d.Name = name
		}
	}
	for _, x := range m.GetData() {
		b, err := proto.Marshal(x)
		if err != nil {
			return
		}
		d.data = append(d.data, b)
	}
	if c.cfg.onDigest != nil {
		c.cfg.onDigest(d)
	}
	_ = c.send(&p4pb.StreamMessageRequest{Update: &p4pb.StreamMessageRequest_DigestAck{
		DigestAck: &p4pb.DigestListAck{DigestId: m.GetDigestId(), ListId: m.GetListId()}}}) // else the switch sends it again
}

// send sends a message on the stream.
func (c *Client) send(m *p4pb.StreamMessageRequest) error {
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	if stream == nil {
		return ErrUnreachable
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := stream.Send(m); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// sendPacket has the switch send a packet. There is no answer whether it did.
func (c *Client) sendPacket(p Packet) error {
	if err := c.may(true); err != nil {
		return err
	}
	m := &p4pb.PacketOut{Payload: p.Payload}
	for _, id := range slices.Sorted(maps.Keys(p.Metadata)) {
		m.Metadata = append(m.Metadata, &p4pb.PacketMetadata{MetadataId: id, Value: []byte(p.Metadata[id])})
	}
	return c.send(&p4pb.StreamMessageRequest{Update: &p4pb.StreamMessageRequest_Packet{Packet: m}})
}

// Digests has the switch send a digest of its program, or stop sending it if cfg is nil.
func (c *Client) Digests(ctx context.Context, name string, cfg *digestConfig) error {
	id, ok := c.info.digests[name]
	if !ok {
		return fmt.Errorf("digest %s: the program has none", name)
	}
	if err := c.ready(ctx, true); err != nil {
		return err
	}
	m := &p4pb.DigestEntry{DigestId: id}
	ops := []p4pb.Update_Type{p4pb.Update_DELETE}
	if cfg != nil {
		m.Config = &p4pb.DigestEntry_Config{MaxTimeoutNs: cfg.maxTimeout, MaxListSize: cfg.maxList, AckTimeoutNs: cfg.ackTimeout}
		ops = []p4pb.Update_Type{p4pb.Update_INSERT, p4pb.Update_MODIFY}
	}
	var err error
	for _, op := range ops { // the second, if it is there already
		var refused []error
		refused, err = c.request(ctx, []*p4pb.Update{{Type: op, Entity: &p4pb.Entity{Entity: &p4pb.Entity_DigestEntry{DigestEntry: m}}}})
		if err == nil && refused != nil {
			err = refused[0]
		}
		if !errors.Is(err, p4.ErrExists) {
			break
		}
	}
	return err
}

// Counters implements [Counting].
func (c *Client) Counters(ctx context.Context, name string) ([]counter, error) {
	info := c.info.counters[name]
	if info == nil {
		return nil, fmt.Errorf("counter %s: the program has none", name)
	}
	if err := c.ready(ctx, false); err != nil {
		return nil, err
	}
	var cells []counter
	id := info.GetPreamble().GetId()
	ask := &p4pb.Entity{Entity: &p4pb.Entity_CounterEntry{CounterEntry: &p4pb.CounterEntry{CounterId: id}}}
	err := c.read(ctx, []*p4pb.Entity{ask}, func(x *p4pb.Entity) error {
		e := x.GetCounterEntry()
		switch at := e.GetIndex().GetIndex(); {
		case e.GetCounterId() != id, at < 0, at >= info.GetSize(), len(cells) >= maxCells:
			return badAnswer("cell %d of counter %d, where %s of %d cells was asked for", at, e.GetCounterId(), name, info.GetSize())
		default:
			cells = append(cells, counter{at, e.GetData().GetPacketCount(), e.GetData().GetByteCount()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(cells, func(a, b counter) int { return cmp.Compare(a.Index, b.Index) })
	return cells, nil
}
