package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/p4/agent"
)

const (
	mostAgents  = 8192             // connections of agents, where there are descriptors for them
	mostSilent  = 256              // connections that have shown no certificate yet
	firstCommon = 10 * time.Second // that a handshake may take
)

// errNoRoom is the error of a connection with a good certificate for which there is no place.
var errNoRoom = errors.New("too many agents are connected")

// ServeOptions returns the options by which agents are served, by the certificates of conf, at a listener of [LimitAgents].
func ServeOptions(conf *tls.Config) []grpc.ServerOption {
	return append(agent.ServerOptions(conf), grpc.Creds(admitting{credentials.NewTLS(conf)}), grpc.ConnectionTimeout(firstCommon),
		grpc.MaxRecvMsgSize(1<<20), grpc.MaxConcurrentStreams(4))
}

// LimitAgents bounds the connections of agents: a quarter of the descriptors of the process stays for everything else. Of those that have
// shown no certificate yet the oldest makes room for a new one, with a call of closed.
func LimitAgents(l net.Listener, closed func()) net.Listener {
	return limitAgents(l, descriptors(), closed)
}

func limitAgents(l net.Listener, descriptors uint64, closed func()) net.Listener {
	most := int(min(mostAgents, descriptors-descriptors/4))
	return peer.Limit(l, peer.Limits{Max: most, Silent: max(1, min(mostSilent, most/4)), Evicted: closed})
}

// admitting reserves the place of a connection once its certificate is valid.
type admitting struct {
	credentials.TransportCredentials
}

func (a admitting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := a.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := raw.(*peer.Conn); ok {
		if _, ok := c.Begin(false); !ok {
			return nil, nil, errors.Join(errNoRoom, conn.Close())
		}
	}
	return conn, info, nil
}

func (a admitting) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials serve")
}

func (a admitting) Clone() credentials.TransportCredentials {
	return admitting{a.TransportCredentials.Clone()}
}
