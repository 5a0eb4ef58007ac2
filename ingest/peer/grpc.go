package peer

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
)

// GRPC is [credentials.NewTLS] for a client that gets to know why a server ends the connection at once, such as that it does not take
// the client's certificate. gRPC gives up at the first write that fails, with the reason unread.
func GRPC(conf *tls.Config) credentials.TransportCredentials {
	return lastWordCredentials{credentials.NewTLS(conf)}
}

type lastWordCredentials struct {
	credentials.TransportCredentials
}

func (h lastWordCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return h.TransportCredentials.ClientHandshake(ctx, authority, LastWord(raw))
}

func (h lastWordCredentials) Clone() credentials.TransportCredentials {
	return lastWordCredentials{h.TransportCredentials.Clone()}
}
