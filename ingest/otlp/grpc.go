package otlp

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // senders compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	service  = "opentelemetry.proto.collector.metrics.v1.MetricsService"
	export   = "/" + service + "/Export"
	maxCalls = 8 // of a connection at the same time
)

// newGRPC makes the server of OTLP over gRPC. Its messages stay bytes: their reader decodes them.
func (s *Source) newGRPC(conf *tls.Config) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(raw{}), grpc.MaxRecvMsgSize(s.cfg.MaxRequestBytes), grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(s.cfg.Timeout), grpc.MaxHeaderListSize(16 << 10), grpc.InTapHandle(s.admit), grpc.StatsHandler(calls{s}), grpc.UnknownServiceHandler(s.otherCall),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: s.cfg.Timeout, Timeout: s.cfg.Timeout}),
	}
	if conf != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(conf)))
	}
	g := grpc.NewServer(options...)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var data []byte
			if err := read(&data); err != nil {
				if status.Code(err) == codes.ResourceExhausted {
					s.long.Add(1)
				} else {
					s.damaged.Add(1)
				}
				return nil, err
			}
			return s.call(ctx, data)
		}}},
	}, s)
	return g
}

// admit refuses a call before its message is read, where there is no room for another one. The place is taken when the call begins.
func (s *Source) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	if call.FullMethodName == export && len(s.slots) == cap(s.slots) {
		s.busy.Add(1)
		return nil, unavailable()
	}
	// A message that does not come is not waited for.
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.Timeout)
	context.AfterFunc(ctx, cancel)
	return ctx, nil
}

// calls takes a place for each call from its beginning to its end.
type calls struct{ *Source }

type slotKey struct{}

func (c calls) TagRPC(ctx context.Context, call *stats.RPCTagInfo) context.Context {
	if call.FullMethodName != export {
		return ctx
	}
	return context.WithValue(ctx, slotKey{}, c.slot())
}

func (c calls) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ended := s.(*stats.End); !ended {
		return
	}
	if free, _ := ctx.Value(slotKey{}).(func()); free != nil {
		free()
	}
}

func (calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (calls) HandleConn(context.Context, stats.ConnStats) {}

// call answers one request.
func (s *Source) call(ctx context.Context, data []byte) (any, error) {
	if free, _ := ctx.Value(slotKey{}).(func()); free == nil {
		return nil, unavailable()
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	answer, err := s.offer(ctx, data, addrOf(from))
	switch {
	case err != nil:
		return nil, unavailable()
	case answer.Broken != "":
		return nil, status.Error(codes.InvalidArgument, answer.Broken)
	}
	return responseOf(answer), nil
}

// unavailable asks the sender to come again.
func unavailable() error {
	st := status.New(codes.Unavailable, errBusy.Error())
	if more, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		st = more
	}
	return st.Err()
}

// raw is a codec that leaves messages as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("no bytes but %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("no bytes but %T", v)
	}
	*to = data.Materialize()
	return nil
}
