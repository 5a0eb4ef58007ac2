package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// The heartbeat of kafka-go 0.4.51 has the fields of the answer in the wrong order, so that it never returns an error.
// It goes to any broker, not to the coordinator of the group. These messages replace its own, for the whole process.
// Nothing else in it sends heartbeats through a Client.
func init() { protocol.Register(&heartbeatRequest{}, &heartbeatResponse{}) }

type heartbeatRequest struct {
	GroupID         string `kafka:"min=v0,max=v3"`
	GenerationID    int32  `kafka:"min=v0,max=v3"`
	MemberID        string `kafka:"min=v0,max=v3"`
	GroupInstanceID string `kafka:"min=v3,max=v3,nullable"`
}

// ApiKey implements protocol.Message, which has the name.
func (r *heartbeatRequest) ApiKey() protocol.ApiKey { return protocol.Heartbeat }

// Group has the request sent to the coordinator.
func (r *heartbeatRequest) Group() string { return r.GroupID }

type heartbeatResponse struct {
	ThrottleTimeMs int32 `kafka:"min=v1,max=v3"`
	ErrorCode      int16 `kafka:"min=v0,max=v3"`
}

// ApiKey implements protocol.Message, which has the name.
func (r *heartbeatResponse) ApiKey() protocol.ApiKey { return protocol.Heartbeat }

func sendHeartbeat(ctx context.Context, c *kafka.Client, group, member string, generation int) error {
	transport := c.Transport
	if transport == nil {
		transport = kafka.DefaultTransport
	}
	m, err := transport.RoundTrip(ctx, c.Addr, &heartbeatRequest{GroupID: group, GenerationID: int32(generation), MemberID: member})
	if err != nil {
		return fmt.Errorf("kafka: heartbeat: %w", err)
	}
	r, ok := m.(*heartbeatResponse)
	switch {
	case !ok:
		return errors.New("kafka: heartbeat: another answer")
	case r.ErrorCode != 0:
		return kafka.Error(r.ErrorCode)
	}
	return nil
}
