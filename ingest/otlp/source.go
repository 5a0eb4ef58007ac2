package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"github.com/hopscope/hopscope/ingest"
)

const (
	retryAfter = time.Second     // what a sender is asked to wait
	drainTime  = 2 * time.Second // bounds how long requests that are under way may take when the source ends
)

// errBusy is returned when there is no room for another request.
var errBusy = errors.New("all requests that there is room for are under way; come again")

// Source receives metrics. It is used once.
type Source struct {
	cfg     Config
	grpc    *grpc.Server
	http    *http.Server
	on      []listener // of both
	spare   []string   // what the operator should know of ports that are not served
	queue   chan *request
	slots   chan struct{} // one for each request that is received or waits
	secure  bool          // TLS is set
	foreign foreign       // what came beside it
	json    sync.Mutex    // one is turned into protocol buffers at a time, which takes memory

	frames, bytes, busy, long, damaged atomic.Uint64
}

// request waits for the worker.
type request struct {
	data    []byte
	src     netip.AddrPort
	at      time.Time
	answer  ingest.Answer
	claimed atomic.Bool // by the worker, or given up
	done    chan struct{}
}

// New opens the sockets. Requests are taken once Run is called.
func New(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	conf, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, secure: conf != nil, queue: make(chan *request, cfg.MaxRequests), slots: make(chan struct{}, cfg.MaxRequests)}
	for _, p := range cfg.ports() {
		l, err := net.Listen("tcp", p.Addr)
		if err != nil && p.Spare {
			s.spare = append(s.spare, fmt.Sprintf("otlp: %v; nothing is received there: name the ports that are wanted in the setting ports", err))
			continue
		} else if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.on = append(s.on, listener{watched{netutil.LimitListener(l, cfg.MaxConnections), s, p.HTTP}, p.HTTP})
	}
	s.grpc, s.http = s.newGRPC(conf), s.newHTTP(conf)
	return s, nil
}

// Close closes the sockets of a source that is not run, or that has ended.
func (s *Source) Close() (err error) {
	for _, l := range s.on {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Workers is 1: the points of a stream are followed in one place, whichever connections they come by.
func (s *Source) Workers() int { return 1 }

// Waits returns true: senders keep refused data and send it again.
func (s *Source) Waits() bool { return true }

// listener is one address.
type listener struct {
	net.Listener
	http bool // else gRPC
}

// Addrs are the addresses: those of the settings of OTLP, gRPC first, and then those of the list of ports.
func (s *Source) Addrs() (list []netip.AddrPort) {
	for _, l := range s.on {
		list = append(list, addrOf(l.Addr().String()))
	}
	return list
}

// Notices returns sentences that the operator should read although the source works.
func (s *Source) Notices() []string { return s.spare }

// Stats may be called at any time.
func (s *Source) Stats() ingest.Stats {
	return ingest.Stats{Frames: s.frames.Load(), Bytes: s.bytes.Load(), Refused: s.busy.Load(), TooLong: s.long.Load(), Damaged: s.damaged.Load()}
}

// Run serves until ctx ends. What is under way then is still taken.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	failed := make(chan error, len(s.on))
	var serving sync.WaitGroup
	serve := func(l net.Listener, f func(net.Listener) error) {
		serving.Go(func() {
			if err := f(l); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				failed <- err
			}
		})
	}
	for _, l := range s.on {
		switch {
		case !l.http:
			serve(l, s.grpc.Serve)
		case s.http.TLSConfig != nil:
			serve(l, func(l net.Listener) error { return s.http.ServeTLS(l, "", "") })
		default:
			serve(l, s.http.Serve)
		}
	}
	ended := make(chan struct{})
	var err error
	go func() {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
		s.stop()
		serving.Wait()
		close(ended)
	}()
	b := &ingest.Batch{Frames: make([]ingest.Frame, 1)}
	for {
		select {
		case r := <-s.queue:
			s.handle(r, b, handle)
		case <-ended:
			return err
		}
	}
}

// stop ends both servers, when requests that are under way have their answers or it has taken too long.
func (s *Source) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	defer context.AfterFunc(ctx, s.grpc.Stop)()
	var stopping sync.WaitGroup
	stopping.Go(func() { _ = s.http.Shutdown(ctx); _ = s.http.Close() })
	stopping.Go(s.grpc.GracefulStop)
	stopping.Wait()
}

func (s *Source) handle(r *request, b *ingest.Batch, handle func(worker int, b *ingest.Batch)) {
	if !r.claimed.CompareAndSwap(false, true) {
		return // its sender has given up
	}
	b.Frames = b.Frames[:1]
	b.Frames[0] = ingest.Frame{Data: r.data, Length: len(r.data), Time: r.at.UnixNano(), Link: ingest.LinkOTLP, Src: r.src, Answer: &r.answer}
	handle(0, b)
	s.frames.Add(1)
	s.bytes.Add(uint64(len(r.data)))
	close(r.done)
}

// slot takes a place for a request, and returns a function that releases it; nil if there is none.
func (s *Source) slot() func() {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }
	default:
		s.busy.Add(1)
		return nil
	}
}

// offer passes a request to the worker and waits for the outcome. A sender that does not wait that long sends again;
// points that were read meanwhile are then recognised.
func (s *Source) offer(ctx context.Context, data []byte, src netip.AddrPort) (*ingest.Answer, error) {
	r := &request{data: data, src: src, at: time.Now(), done: make(chan struct{})}
	select {
	case s.queue <- r:
	default:
		s.busy.Add(1)
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.claimed.CompareAndSwap(false, true) {
			s.busy.Add(1)
			return nil, errBusy
		}
		<-r.done
	}
	if r.answer.Broken != "" {
		s.damaged.Add(1)
	}
	return &r.answer, nil
}

func addrOf(text string) netip.AddrPort {
	a, _ := netip.ParseAddrPort(text)
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
