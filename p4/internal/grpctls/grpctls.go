// Package grpctls makes the TLS credentials of gRPC clients, which report why a server ended the connection.
package grpctls

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/hopscope/hopscope/ingest/peer"
)

// Client is [credentials.NewTLS] for a client that gets to know why a server ends the connection at once, such as that it does not take
// the client's certificate. gRPC gives up at the first write that fails, with the reason unread.
func Client(conf *tls.Config) credentials.TransportCredentials {
	return heard{credentials.NewTLS(conf)}
}

type heard struct {
	credentials.TransportCredentials
}

func (h heard) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return h.TransportCredentials.ClientHandshake(ctx, authority, peer.LastWord(raw))
}

func (h heard) Clone() credentials.TransportCredentials { return heard{h.TransportCredentials.Clone()} }
