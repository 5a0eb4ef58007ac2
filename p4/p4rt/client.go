package p4rt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/ingest/peer"
)

// Client is a controller of one switch, over P4Runtime.
type Client struct {
	cfg  Config
	info *Info
	conn *grpc.ClientConn
	rpc  p4pb.P4RuntimeClient

	writing  chan struct{} // has room for one write at a time
	changing sync.Mutex    // one change of state at a time

	mu      sync.Mutex // for what follows
	state   State
	changed chan struct{} // closed when state changes
	stream  p4pb.P4Runtime_StreamChannelClient
	sending sync.Mutex // on stream

	inbox   chan any // [Packet], [Digest]
	dropped atomic.Uint64
	stop    context.CancelFunc
	done    sync.WaitGroup
}

var _ Installer = (*Client)(nil)

// Dial makes a client. It connects in the background, and reconnects until it is closed; [Client.Wait] waits until it
// can write.
func Dial(cfg Config) (*Client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	security := insecure.NewCredentials()
	if !cfg.Plaintext {
		security = credentials.NewTLS(cfg.TLS)
	}
	backoffs := backoff.Config{BaseDelay: cfg.firstWait, Multiplier: 2, Jitter: 0.2, MaxDelay: cfg.mostWait}
	conn, err := grpc.NewClient("passthrough:///"+cfg.Address, grpc.WithTransportCredentials(security), grpc.WithContextDialer(peer.Dial), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoffs, MinConnectTimeout: cfg.Timeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{cfg: cfg, info: cfg.Pipeline.Info, conn: conn, rpc: p4pb.NewP4RuntimeClient(conn), changed: make(chan struct{}),
		writing: make(chan struct{}, 1), inbox: make(chan any, 1024), stop: stop, state: State{Problem: ErrUnreachable}}
	c.done.Go(func() { c.keepStream(ctx) })
	c.done.Go(func() { c.deliver(ctx) })
	return c, nil
}

// Close ends the connection. The entries of the switch stay. Functions of the settings must not call it, because it
// waits for them.
func (c *Client) Close() error {
	c.stop()
	c.done.Wait()
	if errors.Is(c.State().Problem, ErrClosed) {
		return nil
	}
	c.set(func(s *State) { *s = State{Problem: ErrClosed} })
	return c.conn.Close()
}

// State may be called at any time.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Dropped counts packets and digests for which there was no room.
func (c *Client) Dropped() uint64 { return c.dropped.Load() }

// set changes the state, and notifies.
func (c *Client) set(change func(*State)) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.Lock()
	before := c.state
	change(&c.state)
	now := c.state
	if now.same(before) {
		c.mu.Unlock()
		return
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if c.cfg.OnState != nil {
		c.cfg.OnState(now)
	}
}

// Wait waits until the client can write. The error is why it cannot, if ctx ends before.
func (c *Client) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		s, changed := c.state, c.changed
		c.mu.Unlock()
		if s.Set() {
			return nil
		}
		if errors.Is(s.Problem, ErrClosed) {
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if err := c.may(true); err != nil {
				return err
			}
			return ctx.Err()
		}
	}
}

// ready returns why nothing can be read or written now. If the pipeline was the reason, it checks whether it still is.
func (c *Client) ready(ctx context.Context, write bool) error {
	err := c.may(write)
	var other *PipelineError
	if errors.As(err, &other) {
		if err = c.cookie(ctx); err == nil {
			c.pipeline(nil)
		}
	}
	return err
}

// pipeline notes whether the switch runs the right one.
func (c *Client) pipeline(err error) {
	c.set(func(s *State) {
		if s.Connected {
			s.Ready, s.Problem = err == nil, err
		}
	})
}

// may is ready without a question to the switch.
func (c *Client) may(write bool) error {
	s := c.State()
	switch {
	case !s.Connected && errors.Is(s.Problem, ErrUnreachable), errors.Is(s.Problem, ErrClosed):
		return s.Problem
	case !s.Connected:
		return fmt.Errorf("%w: %w", ErrUnreachable, s.Problem)
	case write && !s.Primary:
		return fmt.Errorf("%w: its election id is %d:%d, ours %d:%d", ErrNotPrimary, s.Leader.High, s.Leader.Low, c.cfg.Election.High, c.cfg.Election.Low)
	case !s.Ready:
		return s.Problem
	}
	return nil
}

func (c *Client) election() *p4pb.Uint128 {
	return &p4pb.Uint128{High: c.cfg.Election.High, Low: c.cfg.Election.Low}
}

// timed bounds a request.
func (c *Client) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// failure classifies an error of a request.
func (c *Client) failure(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	reported := &switchError{Code: s.Code(), Message: cut(s.Message())}
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnreachable, reported)
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: %w", &PipelineError{Want: c.cfg.Pipeline.Cookie, None: true}, reported)
	}
	return reported
}

// Commit verifies the pipeline and loads it. All entries of the switch are gone with that, as P4Runtime has it.
func (c *Client) Commit(ctx context.Context) error {
	return c.load(ctx, p4pb.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT)
}

// Verify has the switch check that it could load the pipeline. It loads nothing.
func (c *Client) Verify(ctx context.Context) error {
	return c.load(ctx, p4pb.SetForwardingPipelineConfigRequest_VERIFY)
}

func (c *Client) load(ctx context.Context, action p4pb.SetForwardingPipelineConfigRequest_Action) error {
	if c.cfg.Pipeline.device == nil {
		return errors.New("the pipeline has no program to load")
	}
	if s := c.State(); !s.Connected || !s.Primary {
		return c.may(true)
	}
	if err := c.push(ctx, action); err != nil {
		return err
	}
	if action == p4pb.SetForwardingPipelineConfigRequest_VERIFY {
		return nil
	}
	if err := c.cookie(ctx); err != nil {
		return err
	}
	c.pipeline(nil)
	return nil
}

func (c *Client) push(ctx context.Context, action p4pb.SetForwardingPipelineConfigRequest_Action) error {
	ctx, cancel := c.timed(ctx)
	defer cancel()
	_, err := c.rpc.SetForwardingPipelineConfig(ctx, &p4pb.SetForwardingPipelineConfigRequest{
		DeviceId: c.cfg.Device, Role: c.cfg.role, ElectionId: c.election(), Action: action, Config: c.cfg.Pipeline.Config()})
	if err != nil {
		return fmt.Errorf("pipeline: %v: %w", action, c.failure(err))
	}
	return nil
}

// cookie compares the pipeline of the switch with that of the settings.
func (c *Client) cookie(ctx context.Context) error {
	ctx, cancel := c.timed(ctx)
	defer cancel()
	want := c.cfg.Pipeline.Cookie
	r, err := c.rpc.GetForwardingPipelineConfig(ctx, &p4pb.GetForwardingPipelineConfigRequest{
		DeviceId: c.cfg.Device, ResponseType: p4pb.GetForwardingPipelineConfigRequest_COOKIE_ONLY})
	switch {
	case err != nil:
		return c.failure(err)
	case r.GetConfig().GetCookie() == nil:
		return &PipelineError{Want: want, None: true}
	case r.GetConfig().GetCookie().GetCookie() != want:
		return &PipelineError{Want: want, Have: r.GetConfig().GetCookie().GetCookie()}
	}
	return nil
}
