package p4rttest

import (
	"cmp"
	"slices"
	"sync"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stream is a controller that is connected.
type stream struct {
	p4pb.P4Runtime_StreamChannelServer
	id      *p4pb.Uint128
	sending sync.Mutex
	gone    chan struct{} // closed to end it
}

func (x *stream) send(m *p4pb.StreamMessageResponse) {
	x.sending.Lock()
	defer x.sending.Unlock()
	_ = x.Send(m) // a stream that is over ends by itself
}

func compare(a, b *p4pb.Uint128) int {
	return cmp.Or(cmp.Compare(a.GetHigh(), b.GetHigh()), cmp.Compare(a.GetLow(), b.GetLow()))
}

// StreamChannel implements P4Runtime.
func (s *Server) StreamChannel(in p4pb.P4Runtime_StreamChannelServer) error {
	m, err := in.Recv()
	if err != nil {
		return err
	}
	a := m.GetArbitration()
	switch {
	case a == nil:
		return status.Error(codes.FailedPrecondition, "the first message is not about the election")
	case a.GetDeviceId() != s.device:
		return status.Error(codes.NotFound, "no such device")
	case a.GetElectionId().GetHigh() == 0 && a.GetElectionId().GetLow() == 0:
		return status.Error(codes.InvalidArgument, "election id 0")
	}
	x := &stream{P4Runtime_StreamChannelServer: in, id: a.GetElectionId(), gone: make(chan struct{})}
	if err := s.join(x); err != nil {
		return err
	}
	defer s.leave(x)
	over := make(chan error, 1)
	go func() { // ends with the stream
		for {
			m, err := in.Recv()
			if err != nil {
				over <- err
				return
			}
			s.receive(m)
		}
	}()
	select {
	case <-x.gone:
		return status.Error(codes.Unavailable, "the switch is going down")
	case err := <-over:
		return err
	}
}

func (s *Server) receive(m *p4pb.StreamMessageRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := m.GetPacket(); p != nil {
		s.packets = append(s.packets, p)
	}
	if a := m.GetDigestAck(); a != nil {
		s.acks = append(s.acks, a)
	}
}

func (s *Server) join(x *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.streams {
		if compare(o.id, x.id) == 0 {
			return status.Error(codes.InvalidArgument, "Election id already exists")
		}
	}
	s.streams = append(s.streams, x)
	s.elect()
	return nil
}

func (s *Server) leave(x *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(o *stream) bool { return o == x })
	s.elect()
}

// primary is the stream with the highest id.
func (s *Server) primary() *stream {
	if len(s.streams) == 0 {
		return nil
	}
	return slices.MaxFunc(s.streams, func(a, b *stream) int { return compare(a.id, b.id) })
}

// elect sends the primary to all streams.
func (s *Server) elect() {
	first := s.primary()
	for _, x := range s.streams {
		if x.P4Runtime_StreamChannelServer == nil {
			continue // no stream is open
		}
		why := &statuspb.Status{Message: "Is primary"}
		if x != first {
			why = &statuspb.Status{Code: int32(codes.AlreadyExists), Message: "Is backup"}
		}
		m := &p4pb.StreamMessageResponse{Update: &p4pb.StreamMessageResponse_Arbitration{
			Arbitration: &p4pb.MasterArbitrationUpdate{DeviceId: s.device, ElectionId: first.id, Status: why}}}
		if s.faults.Greeting == nil || s.faults.Greeting(m) {
			x.send(m)
		}
	}
}

// Demote is another controller with a higher election id, which takes over and does nothing. It goes away when gone is
// called.
func (s *Server) Demote() (gone func()) {
	x := &stream{id: &p4pb.Uint128{High: 1 << 63}, gone: make(chan struct{})}
	s.mu.Lock()
	s.streams = append(s.streams, x)
	s.elect()
	s.mu.Unlock()
	return func() { s.leave(x) }
}

// Drop ends all streams.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.streams {
		if x.P4Runtime_StreamChannelServer != nil {
			close(x.gone)
		}
	}
	s.streams = nil
}

// SendPrimary sends a message to the primary.
func (s *Server) SendPrimary(m *p4pb.StreamMessageResponse) {
	s.mu.Lock()
	x := s.primary()
	s.mu.Unlock()
	if x != nil && x.P4Runtime_StreamChannelServer != nil {
		x.send(m)
	}
}

// authorize refuses a controller that is not primary.
func (s *Server) authorize(device uint64, id *p4pb.Uint128) error {
	if device != s.device {
		return status.Error(codes.NotFound, "no such device")
	}
	if p := s.primary(); p == nil || compare(p.id, id) != 0 {
		return status.Error(codes.PermissionDenied, "Not primary")
	}
	return nil
}
