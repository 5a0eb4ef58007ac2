package p4rt

import (
	"errors"
	"sync"
	"testing"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/p4"
)

// Packets go both ways, and digests are acknowledged. A slow reader loses some, and nothing else.
func TestStreamMessages(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	var mu sync.Mutex
	var packets []Packet
	var digests []Digest
	hold := make(chan struct{})
	cfg.onPacket = func(p Packet) {
		mu.Lock()
		packets = append(packets, p)
		n := len(packets)
		mu.Unlock()
		if n == 2 {
			<-hold
		}
	}
	cfg.onDigest = func(d Digest) {
		mu.Lock()
		digests = append(digests, d)
		mu.Unlock()
	}
	c := ready(t, dial(t, cfg))
	packet := func(payload string) *p4pb.StreamMessageResponse {
		return &p4pb.StreamMessageResponse{Update: &p4pb.StreamMessageResponse_Packet{Packet: &p4pb.PacketIn{
			Payload: []byte(payload), Metadata: []*p4pb.PacketMetadata{{MetadataId: 1, Value: []byte{0, 5}}}}}}
	}
	b.SendPrimary(packet("one"))
	b.SendPrimary(&p4pb.StreamMessageResponse{Update: &p4pb.StreamMessageResponse_Digest{Digest: &p4pb.DigestList{DigestId: 5, ListId: 77, Timestamp: 9,
		Data: []*p4pb.P4Data{{Data: &p4pb.P4Data_Bitstring{Bitstring: []byte{1}}}}}}})
	b.SendPrimary(&p4pb.StreamMessageResponse{Update: &p4pb.StreamMessageResponse_Error{Error: &p4pb.StreamError{Message: "something"}}})
	b.SendPrimary(&p4pb.StreamMessageResponse{})
	until(t, "acknowledged", func() bool { _, acks := b.Sent(); return len(acks) == 1 && acks[0].GetListId() == 77 })
	mu.Lock()
	if len(packets) != 1 || string(packets[0].Payload) != "one" || packets[0].Metadata[1] != p4.Uint(5) {
		t.Errorf("%+v", packets)
	}
	if len(digests) != 1 || digests[0].List != 77 || digests[0].Time != 9 || len(digests[0].data) != 1 {
		t.Errorf("%+v", digests)
	}
	mu.Unlock()
	for range 2000 {
		b.SendPrimary(packet("more"))
	}
	until(t, "dropped", func() bool { return c.Dropped() >= 900 })
	if errs, err := c.Write(within(t), inserts(route(0, 1))); errs != nil || err != nil {
		t.Error(errs, err)
	}
	close(hold)
	until(t, "delivered", func() bool { mu.Lock(); defer mu.Unlock(); return uint64(len(packets))+c.Dropped() == 2001 })
	if err := c.sendPacket(Packet{Payload: []byte("out"), Metadata: map[uint32]p4.Value{2: p4.Uint(6), 1: p4.Uint(5)}}); err != nil {
		t.Error(err)
	}
	until(t, "sent", func() bool { out, _ := b.Sent(); return len(out) == 1 })
	if out, _ := b.Sent(); string(out[0].GetPayload()) != "out" || len(out[0].GetMetadata()) != 2 || out[0].GetMetadata()[0].GetMetadataId() != 1 {
		t.Errorf("%v", out)
	}
	if err := c.Digests(within(t), "nothing", nil); err == nil {
		t.Error("a digest that the program does not have")
	}
}

func TestCounters(t *testing.T) {
	b := newBench(t, "pint")
	c := ready(t, dial(t, b.config(t, "pint")))
	const name = "ingress.stuck_ids"
	info := c.info.counters[name]
	b.Count(info.GetPreamble().GetId(), 3, 17)
	got, err := c.Counters(within(t), name)
	if err != nil || int64(len(got)) != info.GetSize() || got[3] != (counter{Index: 3, Packets: 17}) || got[4] != (counter{Index: 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.Counters(within(t), "ingress.stuck"); err == nil {
		t.Error("a counter that the program does not have")
	}
	for _, lie := range []*p4pb.CounterEntry{
		{CounterId: 1, Index: &p4pb.Index{Index: 1}}, {CounterId: info.GetPreamble().GetId(), Index: &p4pb.Index{Index: -1}},
		{CounterId: info.GetPreamble().GetId(), Index: &p4pb.Index{Index: 1 << 40}},
	} {
		b.Misbehave(func(f *p4rttest.Faults) {
			f.Reads = func([]*p4pb.Entity) []*p4pb.Entity {
				return []*p4pb.Entity{{Entity: &p4pb.Entity_CounterEntry{CounterEntry: lie}}}
			}
		})
		var answer *answerError
		if _, err := c.Counters(within(t), name); !errors.As(err, &answer) {
			t.Errorf("%v: %v", lie, err)
		}
	}
}
