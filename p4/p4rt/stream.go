package p4rt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// keepStream keeps a stream to the switch, until ctx ends.
func (c *Client) keepStream(ctx context.Context) {
	wait := retry.Backoff{Min: c.cfg.firstWait, Max: c.cfg.mostWait, Spread: 0.5} // not all switches at once
	wait.Keep(ctx, c.session, func(err error) { c.set(func(s *State) { *s = State{Problem: c.ended(err)} }) })
}

// ended returns why a stream is over.
func (c *Client) ended(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ended the stream", ErrUnreachable)
	}
	var answer *answerError
	if errors.As(err, &answer) {
		return err
	}
	switch s, _ := status.FromError(err); s.Code() {
	case codes.InvalidArgument, codes.AlreadyExists:
		return fmt.Errorf("%w: %s", ErrElection, cut(s.Message()))
	case codes.ResourceExhausted, codes.FailedPrecondition, codes.NotFound, codes.Unimplemented, codes.Internal, codes.Unknown:
		return fmt.Errorf("%w: it ended the stream: %s", ErrUnreachable, cut(s.Message()))
	}
	return c.failure(err)
}

// session is one stream.
func (c *Client) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := c.rpc.StreamChannel(ctx)
	if err != nil {
		return err
	}
	m := &p4pb.MasterArbitrationUpdate{DeviceId: c.cfg.Device, ElectionId: c.election()}
	if c.cfg.role != "" {
		m.Role = &p4pb.Role{Name: c.cfg.role}
	}
	err = stream.Send(&p4pb.StreamMessageRequest{Update: &p4pb.StreamMessageRequest_Arbitration{Arbitration: m}})
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF the reason is for the receiver
		return err
	}
	silent := time.AfterFunc(c.cfg.Timeout, func() { cancel(fmt.Errorf("no answer within %v", c.cfg.Timeout)) })
	defer silent.Stop()
	defer c.use(nil)
	for first := true; ; first = false {
		m, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
				return status.Error(codes.DeadlineExceeded, cause.Error())
			}
			return err
		}
		silent.Stop()
		if first && m.GetArbitration() == nil {
			return badAnswer("its first message is not about the election")
		}
		if err := c.receive(ctx, m); err != nil {
			return err
		}
		if first {
			c.use(stream)
			var asking sync.WaitGroup
			defer asking.Wait()
			defer cancel(nil)
			asking.Go(func() { c.ask(ctx, cancel) })
		}
	}
}

// settle compares the pipeline of the switch with that of the settings, and loads the latter if the settings ask for
// it.
func (c *Client) settle(ctx context.Context, primary bool) error {
	err := c.cookie(ctx)
	var other *PipelineError
	if !primary || !c.cfg.Commit || !errors.As(err, &other) {
		return err
	}
	c.pipeline(err) // its entries are gone, though the stream is not
	if err := c.push(ctx, p4pb.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT); err != nil {
		return err
	}
	return c.cookie(ctx)
}

// ask reads the configuration of the switch now and then. Pings would also show that it is there, but servers end
// connections with too many pings.
func (c *Client) ask(ctx context.Context, gone context.CancelCauseFunc) {
	for {
		retry.Sleep(ctx, c.cfg.checkEvery)
		err := c.settle(ctx, c.State().Primary)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrUnreachable):
			gone(err)
			return
		}
		c.pipeline(err)
	}
}

func (c *Client) use(stream p4pb.P4Runtime_StreamChannelClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = stream
}

// receive processes an unsolicited message of a switch.
func (c *Client) receive(ctx context.Context, m *p4pb.StreamMessageResponse) error {
	switch u := m.GetUpdate().(type) {
	case *p4pb.StreamMessageResponse_Arbitration:
		return c.elected(ctx, u.Arbitration)
	case *p4pb.StreamMessageResponse_Packet:
		c.queue(packetOf(u.Packet))
	case *p4pb.StreamMessageResponse_Digest:
		c.queue(u.Digest)
	}
	return nil // other messages are unsolicited
}

// elected processes a change of the primary, and checks the pipeline.
func (c *Client) elected(ctx context.Context, m *p4pb.MasterArbitrationUpdate) error {
	if m.GetDeviceId() != c.cfg.Device {
		return badAnswer("it speaks of device %d, and was asked for %d", m.GetDeviceId(), c.cfg.Device)
	}
	leader := Election{m.GetElectionId().GetHigh(), m.GetElectionId().GetLow()}
	primary := false
	switch code := codes.Code(m.GetStatus().GetCode()); code {
	case codes.OK:
		if primary = true; leader != (Election{}) && leader != c.cfg.Election {
			return badAnswer("this controller is primary, but with the election id %d:%d", leader.High, leader.Low)
		}
		leader = c.cfg.Election
	case codes.AlreadyExists, codes.NotFound:
	default:
		return badAnswer("the election ends with %v", code)
	}
	if was := c.State(); was.Primary == primary && was.Ready {
		c.set(func(s *State) { s.Leader = leader })
		return nil
	}
	err := c.settle(ctx, primary)
	if errors.Is(err, ErrUnreachable) {
		return status.Error(codes.Unavailable, err.Error())
	}
	c.set(func(s *State) {
		*s = State{Connected: true, Primary: primary, Leader: leader, Ready: err == nil, Problem: err}
	})
	return nil
}
