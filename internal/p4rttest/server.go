package p4rttest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/hopscope/hopscope/p4"
)

// Tables are the tables of a switch; a [p4.Store] has all of these methods. The server calls one of them at a time.
type Tables interface {
	Insert(p4.Entry) error
	Modify(p4.Entry) error
	Put(p4.Entry) (was bool, err error)
	Delete(*p4.Entry) error
	Read(name string) []p4.Entry
}

// Counted is implemented by tables whose switch counts by itself: packets, by the name of a counter and its cell.
type Counted interface {
	Count(name string, cell int) uint64
}

// counterName is the name of a counter by its id.
func (s *Server) counterName(id uint32) string {
	for _, c := range s.config.GetP4Info().GetCounters() {
		if c.GetPreamble().GetId() == id {
			return c.GetPreamble().GetName()
		}
	}
	return ""
}

// Load makes the tables of a switch that gets a program. Default actions that are there at once are those of the program.
type Load func(info *configpb.P4Info, device []byte) (Tables, error)

// Faults are the faults of a server. The zero value is a good server.
type Faults struct {
	Delay    time.Duration                                   // before each answer
	Reject   func(*p4pb.Update) *p4pb.Error                  // updates that are not carried out, by what is said instead
	Instead  func(*p4pb.WriteRequest) error                  // the answer to a write that is not looked at, unless it gives nil
	After    func(*p4pb.WriteRequest) error                  // the answer to a write that was carried out
	Forget   bool                                            // says that it wrote, and did not
	Reads    func([]*p4pb.Entity) []*p4pb.Entity             // what is read in place of what is there
	Padded   bool                                            // gives numbers in the width of their fields, as older servers do
	Opaque   bool                                            // a full table is an unknown error, and reads are one message, as BMv2 has it
	Cookie   uint64                                          // in place of that of the pipeline, if not 0
	Greeting func(*p4pb.StreamMessageResponse) (answer bool) // changes what it says first, or says nothing
}

// Server is a switch with P4Runtime.
type Server struct {
	p4pb.UnimplementedP4RuntimeServer
	device uint64
	load   Load

	mu       sync.Mutex
	faults   Faults
	config   *p4pb.ForwardingPipelineConfig // nil for none
	codec    *codec
	tables   Tables
	initial  map[string]p4.Entry // default actions of the program
	sessions map[uint32]*p4pb.CloneSessionEntry
	counters map[uint32][]*p4pb.CounterData
	digests  map[uint32]*p4pb.DigestEntry_Config
	streams  []*stream
	writes   []*p4pb.WriteRequest
	packets  []*p4pb.PacketOut
	acks     []*p4pb.DigestListAck
}

// New makes a switch without a program.
func New(device uint64, load Load) *Server { return &Server{device: device, load: load} }

// Start serves on a port of this machine, until stop is called.
func (s *Server) Start(opts ...grpc.ServerOption) (address string, stop func(), err error) {
	return s.StartAt("127.0.0.1:0", opts...)
}

// StartAt is Start for a given address.
func (s *Server) StartAt(at string, opts ...grpc.ServerOption) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return "", nil, err
	}
	g := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(64<<20))...)
	p4pb.RegisterP4RuntimeServer(g, s)
	var done sync.WaitGroup
	done.Go(func() { _ = g.Serve(l) }) // it ends when it is stopped
	return l.Addr().String(), func() {
		g.Stop()
		done.Wait()
	}, nil
}

// Misbehave changes the faults.
func (s *Server) Misbehave(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// Inspect calls a function with the tables, nil if there is no program.
func (s *Server) Inspect(look func(Tables)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(s.tables)
}

// Writes returns the requests to write that came since it was last called.
func (s *Server) Writes() []*p4pb.WriteRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.writes
	s.writes = nil
	return list
}

// Sent returns the packets that the controller sent, and the digests that it acknowledged.
func (s *Server) Sent() ([]*p4pb.PacketOut, []*p4pb.DigestListAck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.packets), slices.Clone(s.acks)
}

// Sessions returns the port of each clone session.
func (s *Server) Sessions() map[uint32]uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ports := map[uint32]uint16{}
	for id, x := range s.sessions {
		ports[id] = uint16(p4.Bytes(x.GetReplicas()[0].GetPort()).Uint64())
	}
	return ports
}

// Count sets a cell of a counter.
func (s *Server) Count(id uint32, cell int, packets int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters[id][cell].PacketCount = packets
}

// Preload is a switch that runs a program from elsewhere.
func (s *Server) Preload(info *configpb.P4Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = &p4pb.ForwardingPipelineConfig{P4Info: info, Cookie: &p4pb.ForwardingPipelineConfig_Cookie{Cookie: 1}}
}

// Unload takes the program away.
func (s *Server) Unload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.tables = nil, nil
}

// Restart is a switch that started again: it has no program, and no streams.
func (s *Server) Restart() {
	s.Unload()
	s.Drop()
}

// answer waits as long as the server takes.
func (s *Server) answer(ctx context.Context) (Faults, error) {
	s.mu.Lock()
	f := s.faults
	s.mu.Unlock()
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return f, status.FromContextError(ctx.Err()).Err()
		case <-t.C:
		}
	}
	return f, nil
}

var errNoPipeline = status.Error(codes.FailedPrecondition, "No forwarding pipeline config set for this device")

// SetForwardingPipelineConfig implements P4Runtime.
func (s *Server) SetForwardingPipelineConfig(ctx context.Context, m *p4pb.SetForwardingPipelineConfigRequest) (*p4pb.SetForwardingPipelineConfigResponse, error) {
	if _, err := s.answer(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.authorize(m.GetDeviceId(), m.GetElectionId()); err != nil {
		return nil, err
	}
	code, err := newCodec(m.GetConfig().GetP4Info())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	tables, err := s.load(m.GetConfig().GetP4Info(), m.GetConfig().GetP4DeviceConfig())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	switch m.GetAction() {
	case p4pb.SetForwardingPipelineConfigRequest_VERIFY:
		return &p4pb.SetForwardingPipelineConfigResponse{}, nil
	case p4pb.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT:
	default:
		return nil, status.Errorf(codes.Unimplemented, "%v", m.GetAction())
	}
	s.run(m.GetConfig(), code, tables)
	return &p4pb.SetForwardingPipelineConfigResponse{}, nil
}

// Boot is a switch that starts anew with a program from elsewhere: its tables are empty, and its streams are gone.
func (s *Server) Boot(c *p4pb.ForwardingPipelineConfig) error {
	code, err := newCodec(c.GetP4Info())
	if err != nil {
		return err
	}
	s.mu.Lock()
	tables, err := s.load(c.GetP4Info(), c.GetP4DeviceConfig())
	if err == nil {
		s.run(c, code, tables)
	}
	s.mu.Unlock()
	s.Drop()
	return err
}

// run makes a program that of the switch. The lock is held.
func (s *Server) run(c *p4pb.ForwardingPipelineConfig, code *codec, tables Tables) {
	s.config, s.codec, s.tables, s.initial = c, code, tables, map[string]p4.Entry{}
	for _, e := range tables.Read("") {
		if e.Default() {
			s.initial[e.Table] = e
		}
	}
	s.sessions, s.counters, s.digests = map[uint32]*p4pb.CloneSessionEntry{}, map[uint32][]*p4pb.CounterData{}, map[uint32]*p4pb.DigestEntry_Config{}
	for _, c := range c.GetP4Info().GetCounters() {
		for range c.GetSize() {
			s.counters[c.GetPreamble().GetId()] = append(s.counters[c.GetPreamble().GetId()], &p4pb.CounterData{})
		}
	}
}

// GetForwardingPipelineConfig implements P4Runtime.
func (s *Server) GetForwardingPipelineConfig(ctx context.Context, m *p4pb.GetForwardingPipelineConfigRequest) (*p4pb.GetForwardingPipelineConfigResponse, error) {
	f, err := s.answer(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.GetDeviceId() != s.device {
		return nil, status.Error(codes.NotFound, "no such device")
	}
	if s.config == nil {
		return nil, errNoPipeline
	}
	c := proto.Clone(s.config).(*p4pb.ForwardingPipelineConfig)
	if f.Cookie != 0 {
		c.Cookie = &p4pb.ForwardingPipelineConfig_Cookie{Cookie: f.Cookie}
	}
	if m.GetResponseType() == p4pb.GetForwardingPipelineConfigRequest_COOKIE_ONLY {
		c.P4Info, c.P4DeviceConfig = nil, nil
	}
	return &p4pb.GetForwardingPipelineConfigResponse{Config: c}, nil
}

// Write implements P4Runtime. It carries out the updates of a request from the last to the first: nothing may rest on
// the other order.
func (s *Server) Write(ctx context.Context, m *p4pb.WriteRequest) (*p4pb.WriteResponse, error) {
	f, err := s.answer(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.authorize(m.GetDeviceId(), m.GetElectionId()); err != nil {
		return nil, err
	}
	if s.tables == nil {
		return nil, errNoPipeline
	}
	s.writes = append(s.writes, m)
	if f.Instead != nil {
		if err := f.Instead(m); err != nil {
			return nil, err
		}
	}
	errs, failed := make([]*p4pb.Error, len(m.GetUpdates())), false
	for i, u := range slices.Backward(m.GetUpdates()) {
		if f.Reject != nil {
			errs[i] = f.Reject(u)
		}
		if errs[i] == nil && !f.Forget {
			errs[i] = reason(s.update(u), f.Opaque)
		}
		failed = failed || errs[i] != nil
	}
	if f.After != nil {
		if err := f.After(m); err != nil {
			return nil, err
		}
	}
	if !failed {
		return &p4pb.WriteResponse{}, nil
	}
	return nil, Status(errs)
}

// Status makes the status of a request whose updates have these errors, nil for those that were carried out.
func Status(errs []*p4pb.Error) error {
	out := &statuspb.Status{Code: int32(code.Code_UNKNOWN)}
	for _, e := range errs {
		if e == nil {
			e = &p4pb.Error{}
		}
		packed, err := anypb.New(e)
		if err != nil {
			return err
		}
		out.Details = append(out.Details, packed)
	}
	return status.ErrorProto(out)
}

// errBad is a message that breaks the specification.
type errBad struct{ error }

// reason returns the reason for which an update failed.
func reason(err error, opaque bool) *p4pb.Error {
	if err == nil {
		return nil
	}
	why := codes.Unknown
	var bad errBad
	switch {
	case errors.Is(err, p4.ErrFull) && opaque:
		return &p4pb.Error{CanonicalCode: int32(codes.Unknown), Message: "Error when adding match entry to target"}
	case errors.Is(err, p4.ErrFull):
		why = codes.ResourceExhausted
	case errors.Is(err, p4.ErrExists):
		why = codes.AlreadyExists
	case errors.Is(err, p4.ErrNotFound):
		why = codes.NotFound
	case errors.Is(err, p4.ErrInvalid), errors.As(err, &bad):
		why = codes.InvalidArgument
	}
	return &p4pb.Error{CanonicalCode: int32(why), Message: err.Error()}
}

// Read implements P4Runtime.
func (s *Server) Read(m *p4pb.ReadRequest, out p4pb.P4Runtime_ReadServer) error {
	f, err := s.answer(out.Context())
	if err != nil {
		return err
	}
	list, err := s.entities(m, f.Padded)
	if err != nil {
		return err
	}
	if f.Reads != nil {
		list = f.Reads(list)
	}
	size := 100
	if f.Opaque {
		size = max(1, len(list))
	}
	for part := range slices.Chunk(list, size) {
		if err := out.Send(&p4pb.ReadResponse{Entities: part}); err != nil {
			return err
		}
	}
	return nil
}
