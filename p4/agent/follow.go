package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/sink/flock"
)

// controllerStatus is the state of the connection to the controller.
type controllerStatus struct {
	Address   string // "" for none
	Connected bool
	Since     time.Time // of the connection, or of its end
	problem   string    // why there is none
}

// How long a silent controller counts as alive, and the wait before the agent reconnects.
const (
	pingEvery = 10 * time.Second
	pingWait  = 5 * time.Second
	firstWait = 250 * time.Millisecond
	mostWait  = 15 * time.Second
	settle    = time.Second

	maxMessage = 64 << 20 // a plan of half a million probes
)

// reconnect spreads the waits: not all agents come back at once.
var reconnect = retry.Backoff{Min: firstWait, Max: mostWait, Spread: 0.5}

// ServerOptions returns the options with which a controller serves agents. They require mutual TLS by conf, which holds
// its certificate and the authorities of the agents. They allow pings as often as agents send them.
func ServerOptions(conf *tls.Config) []grpc.ServerOption {
	conf = conf.Clone()
	conf.MinVersion, conf.ClientAuth = tls.VersionTLS13, tls.RequireAndVerifyClientCert
	return []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(conf)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery / 2}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingWait}),
	}
}

// tls reads the files. The controller is known by its name alone, and signed by the settings' own authorities.
func (c *Controller) tls() (*tls.Config, error) {
	authorities, certificate, err := peer.Mutual(c.CAFile, c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{ServerName: c.Name, MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: certificate}, nil
}

// receivePlans takes plans from the controller, until ctx ends. Where it is gone, the plan stays in force, and the agent tries again.
func (a *Agent) receivePlans(ctx context.Context) {
	a.recall()
	reconnect.Keep(ctx, a.session, a.noteLost)
}

// noteLost notes why there is no controller, and logs each reason once.
func (a *Agent) noteLost(err error) {
	why := err.Error()
	if s, ok := status.FromError(err); ok {
		why = s.Message()
	}
	if errors.Is(err, io.EOF) {
		why = "it ended the stream"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.control
	if c.Connected {
		c.Connected, c.Since = false, time.Now()
	}
	if c.problem == why {
		return
	}
	c.problem = why
	if a.plan == nil {
		a.log.Warn("no controller, and no plan yet: nothing is sent", "controller", c.Address, "error", why)
		return
	}
	a.log.Warn("the controller is gone; the plan stays in force", "controller", c.Address, "epoch", a.plan.Epoch, "error", why)
}

// session is one connection.
func (a *Agent) session(ctx context.Context) error {
	conf, err := a.cfg.Controller.tls()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+a.cfg.Controller.Address, grpc.WithTransportCredentials(credentials.NewTLS(conf)), grpc.WithContextDialer(peer.Dial),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingWait}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	var reports sync.WaitGroup
	defer reports.Wait()
	defer cancel()
	stream, err := agentpb.NewPlansClient(conn).Follow(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(a.hello()); err != nil {
		return streamError(stream, err)
	}
	reports.Go(func() { a.reportRounds(ctx, conn) })
	// A controller that refuses this certificate ends the connection after the handshake. One that is quiet for a
	// moment has accepted it.
	ended := false // by the lock of a
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		ended = true
	}()
	there := sync.OnceFunc(func() { a.connected(&ended) })
	quiet := time.AfterFunc(settle, there)
	defer quiet.Stop()
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		there()
		if err := stream.Send(a.answer(m)); err != nil {
			return streamError(stream, err)
		}
	}
}

// reportRounds answers a controller that asks for rounds, until ctx ends. A controller that does not ask gets no
// answers.
func (a *Agent) reportRounds(ctx context.Context, conn *grpc.ClientConn) {
	wait := retry.Backoff{Min: mostWait, Spread: 0.5} // the plans do not depend on it
	for ctx.Err() == nil {
		if err := a.reportStream(ctx, conn); status.Code(err) == codes.Unimplemented {
			return
		}
		wait.Sleep(ctx)
	}
}

func (a *Agent) reportStream(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := agentpb.NewPlansClient(conn).Tell(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&agentpb.Rounds{Agent: a.cfg.Name}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		r, ok := a.Rounds(ctx.Done())
		if !ok {
			return ctx.Err()
		}
		if err := stream.Send(r.Proto(a.cfg.Name, m.GetNumber())); err != nil && !errors.Is(err, io.EOF) { // the reason is for the receiver
			return err
		}
	}
}

// streamError is why a stream ended on which nothing can be sent any more.
func streamError(stream agentpb.Plans_FollowClient, err error) error {
	if errors.Is(err, io.EOF) { // the reason is for the receiver
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	return err
}

// connected notes that the controller is there, unless the connection has ended meanwhile.
func (a *Agent) connected(ended *bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *ended {
		return
	}
	a.control = controllerStatus{Address: a.control.Address, Connected: true, Since: time.Now()}
	a.log.Info("controller connected", "controller", a.control.Address, "name", a.cfg.Controller.Name, "epoch", a.epoch.Load())
}

// hello identifies the agent.
func (a *Agent) hello() *agentpb.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.cfg
	return &agentpb.Answer{Agent: c.Name, InForce: a.epoch.Load(), Load: loadProto(&a.load), Limits: &agentpb.Limits{
		SendBps: c.SendLimit, ReceiveBps: c.ReceiveLimit, ProbesPerSecond: c.ProbesPerSecond, Probes: uint32(c.MaxProbes), Mtu: uint32(c.MTU)}}
}

// answer puts a plan in force, or returns why not.
func (a *Agent) answer(m *agentpb.Plan) *agentpb.Answer {
	p, err := probe.PlanOf(m)
	if err == nil {
		if _, err = a.Adopt(p, "controller "+a.cfg.Controller.Name); err == nil {
			a.keep(m)
		}
	} else {
		a.refuse(m.GetEpoch(), "controller "+a.cfg.Controller.Name, err)
	}
	s := a.Status()
	out := &agentpb.Answer{Agent: s.Name, InForce: s.Epoch, About: m.GetEpoch(), Load: loadProto(&s.Load)}
	if err != nil {
		out.Refused = err.Error()
	}
	return out
}

// keep writes a plan that is in force to the file from which the next start of the agent takes it.
func (a *Agent) keep(m *agentpb.Plan) {
	path := a.cfg.Controller.PlanFile
	if path == "" {
		return
	}
	b, err := proto.Marshal(m)
	if err == nil {
		err = flock.ReplaceBytes(path, probe.Seal(b))
	}
	if err != nil {
		a.log.Warn("the plan is in force, and not kept for the next start", "epoch", m.GetEpoch(), "error", err.Error())
	}
}

// recall puts the plan in force that was kept before the last end of the agent. It is checked as any other one.
func (a *Agent) recall() {
	path := a.cfg.Controller.PlanFile
	if path == "" {
		return
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var m agentpb.Plan
	if err == nil {
		b, err = probe.Unseal(b)
	}
	if err == nil {
		err = proto.Unmarshal(b, &m)
	}
	if err != nil {
		a.log.Warn("the plan that was kept cannot be read; waiting for the controller", "file", path, "error", err.Error())
		return
	}
	p, err := probe.PlanOf(&m)
	if err != nil {
		a.refuse(m.GetEpoch(), path, err)
		return
	}
	_, _ = a.Adopt(p, path) // which logs what it refuses
}

func loadProto(l *probe.Load) *agentpb.Load {
	return &agentpb.Load{Probes: uint32(l.Sends), SendBps: l.SendBPS, ReceiveBps: l.ReceiveBPS, ProbesPerSecond: l.ProbesPerSecond}
}
