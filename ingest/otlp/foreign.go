package otlp

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hopscope/hopscope/ingest"
)

// foreign holds what came that is no OTLP, by the address that it came from.
type foreign struct {
	mu   sync.Mutex
	list []foreignSender
	more bool // there was no place for others
}

// foreignSender is one sender of one thing that is no OTLP.
type foreignSender struct {
	src  netip.Addr
	what string
}

// maxForeign bounds how many are named.
const maxForeign = 16

// add names what src sends, once.
func (f *foreign) add(src netip.Addr, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch x := (foreignSender{src.Unmap(), what}); {
	case slices.Contains(f.list, x):
	case len(f.list) == maxForeign:
		f.more = true
	default:
		f.list = append(f.list, x)
	}
}

// problem returns a sentence about all foreign senders, or "". It changes with each new one only.
func (f *foreign) problem() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := slices.SortedFunc(slices.Values(f.list), func(a, b foreignSender) int { return cmp.Or(a.src.Compare(b.src), cmp.Compare(a.what, b.what)) })
	var texts []string
	for _, x := range list {
		texts = append(texts, x.src.String()+" sends "+x.what)
	}
	if f.more {
		texts = append(texts, "and more senders")
	}
	return strings.Join(texts, "; ")
}

// countForeign counts and names data that is not OTLP.
func (s *Source) countForeign(src netip.Addr, what string) {
	s.foreign.add(src, what)
	s.damaged.Add(1)
}

// Inputs is all addresses together, and what came to them that is no OTLP.
func (s *Source) Inputs() []ingest.Input {
	return []ingest.Input{{Name: "otlp", Frames: s.frames.Load(), Problem: s.foreign.problem()}}
}

// watched looks at the first bytes of each connection to a listener.
type watched struct {
	net.Listener
	s    *Source
	http bool // else gRPC
}

func (l watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &greeting{Conn: c, l: l}, nil
}

// greeting is a connection until its first bytes show its protocol.
type greeting struct {
	net.Conn
	l    watched
	head []byte
	done bool
}

// enough is how many bytes show each protocol of [protocolOf].
const enough = 12

func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if g.done {
		return n, err
	}
	g.head = append(g.head, b[:min(n, enough-len(g.head))]...)
	if g.done = len(g.head) == enough || err != nil; g.done && len(g.head) > 0 {
		if what := unwanted(protocolOf(g.head), g.l.http, g.l.s.secure); what != "" {
			g.l.s.countForeign(addrOf(g.RemoteAddr().String()).Addr(), what)
		}
	}
	return n, err
}

// protocol is the protocol that the first bytes of a connection show.
type protocol uint8

const (
	unknown protocol = iota
	overTLS
	http1
	http2
	ssh
	sFlow
)

var protocolNames = [...]string{
	unknown: "bytes of no protocol that is known by its first ones", overTLS: "TLS", http1: "HTTP/1", http2: "HTTP/2", ssh: "SSH", sFlow: "sFlow, which is read over UDP",
}

// protocolOf recognises a protocol by at most [enough] bytes.
func protocolOf(head []byte) protocol {
	version := []byte{0, 0, 0, 5}
	switch {
	case len(head) > 1 && head[0] == 0x16 && head[1] == 3:
		return overTLS
	case bytes.HasPrefix(head, []byte("PRI * HTTP")):
		return http2
	case bytes.HasPrefix(head, []byte("SSH-")):
		return ssh
	case bytes.HasPrefix(head, version) || len(head) > 8 && bytes.HasPrefix(head[4:], version):
		return sFlow // with its length before, or without
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions} {
		if bytes.HasPrefix(head, []byte(method+" ")) {
			return http1
		}
	}
	return unknown
}

// unwanted returns what is wrong with a protocol at a port of OTLP, or "" if nothing is. The port is for OTLP over
// HTTP, or else over gRPC. With secure, both are over TLS.
func unwanted(p protocol, http, secure bool) string {
	switch name := protocolNames[p]; {
	case secure && p == overTLS, !secure && http && p == http1, !secure && !http && p == http2:
		return ""
	case secure && (p == http1 || p == http2):
		return name + " without TLS, where otlp.tls_cert_file is set"
	case p == overTLS:
		return name + ", where otlp.tls_cert_file is not set"
	case p == http1:
		return name + " to a port for OTLP over gRPC: a port of type otlp-http takes it"
	case p == http2:
		return name + " to a port for OTLP over HTTP: a port of type otlp-grpc takes gRPC"
	default:
		return name
	}
}

// otherRequest answers a request over HTTP that exports no metrics.
func (s *Source) otherRequest(w http.ResponseWriter, r *http.Request) {
	code, what := http.StatusNotFound, "requests over HTTP to another path than /v1/metrics"
	switch {
	case r.URL.Path == "/v1/metrics":
		code, what = http.StatusMethodNotAllowed, "requests for /v1/metrics that are no POST"
		w.Header().Set("Allow", http.MethodPost)
	case r.URL.Path == "/v1/traces" || r.URL.Path == "/v1/logs":
		what = "traces or logs, where metrics alone are read"
	case r.Method == http.MethodGet && r.URL.Path == "/metrics":
		what = "a scrape of Prometheus: metrics of hopscope itself are at web.listen"
	}
	s.countForeign(addrOf(r.RemoteAddr).Addr(), what)
	http.Error(w, http.StatusText(code), code)
}

// otherCall answers a call over gRPC that exports no metrics.
func (s *Source) otherCall(_ any, stream grpc.ServerStream) error {
	s.countForeign(callerOf(stream.Context()), "calls over gRPC of another service than metrics")
	return status.Error(codes.Unimplemented, "metrics alone are read")
}

func callerOf(ctx context.Context) netip.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		return addrOf(p.Addr.String()).Addr()
	}
	return netip.Addr{}
}
