package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/hopscope/hopscope/ingest/peer"
)

// metadataTTL is about how often topics and leaders are requested. A new topic is known after this.
const metadataTTL = 3 * time.Second

// Client sends requests to Kafka. It is safe for use by several goroutines.
type Client struct {
	*kafka.Client

	conf      Config
	id        string
	transport *kafka.Transport
	principal string

	mu       sync.Mutex
	tls      *tls.Config // that was read last
	password string      // likewise
	problem  string      // why a newer one could not be read
}

// Dial makes a client that calls itself id in the brokers' logs. It reads the files that the settings name; connections
// are made when they are needed.
func (c Config) Dial(id string) (*Client, error) {
	if c.SASL == "" {
		c.SASL = "none"
	}
	client := &Client{conf: c, id: id, principal: "ANONYMOUS"}
	if c.TLS {
		conf, err := c.security()
		if err != nil {
			return nil, err
		}
		client.tls = conf
		if len(conf.Certificates) > 0 && conf.Certificates[0].Leaf != nil {
			client.principal = conf.Certificates[0].Leaf.Subject.String()
		}
	}
	var login sasl.Mechanism
	if c.SASL != "none" {
		password, err := c.password()
		if err != nil {
			return nil, err
		}
		client.password, client.principal = password, c.User
		login = &mechanism{client}
	}
	client.transport = &kafka.Transport{
		Dial: client.dial, DialTimeout: c.Timeout, IdleTimeout: time.Minute, MetadataTTL: metadataTTL,
		MetadataTopics: c.names(), ClientID: id, SASL: login,
	}
	client.Client = &kafka.Client{Addr: kafka.TCP(c.Brokers...), Timeout: c.Timeout, Transport: client.transport}
	return client, nil
}

// Config returns the settings of the client.
func (c *Client) Config() Config { return c.conf }

// Topic returns the name of a topic with the prefix of the fleet.
func (c *Client) Topic(name string) string { return c.conf.Topic(name) }

// Transport carries the requests. Its metadata cover the topics of the fleet alone.
func (c *Client) Transport() *kafka.Transport { return c.transport }

// dialer makes connections of the same kind for the parts of kafka-go that want one, such as a ConsumerGroup.
func (c *Client) dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: c.id, Timeout: c.conf.Timeout, DialFunc: c.dial, SASLMechanism: c.transport.SASL}
}

// Reachable reports whether a broker has answered at least once.
func (c *Client) Reachable(ctx context.Context) bool {
	_, err := c.Metadata(ctx, &kafka.MetadataRequest{})
	return err == nil
}

// Close closes the connections that are not in use. Those in use are closed when they are given back.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Problem returns why a renewed certificate or password could not be read, so that the old one is still used, or "".
func (c *Client) Problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}

// renew calls read and stores its result in place. Without success the former value stays.
func renew[T any](c *Client, place *T, read func() (T, error)) T {
	fresh, err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.problem = fmt.Sprintf("what was read before is still used: %v", err)
		return *place
	}
	*place, c.problem = fresh, ""
	return fresh
}

// dial makes one connection.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.conf.Timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, &Error{Kind: unreachable, Addr: address, Err: err}
	}
	conn = peer.LastWord(conn)
	if !c.conf.TLS {
		return conn, nil
	}
	conf := renew(c, &c.tls, c.conf.security)
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		conf = conf.Clone()
		conf.ServerName = host
	}
	secure := tls.Client(conn, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, c.explainTLS(address, err)
	}
	return secure, nil
}

// mechanism logs in with the password of the moment.
type mechanism struct{ c *Client }

func (m *mechanism) Name() string {
	switch m.c.conf.SASL {
	case "scram-sha-256":
		return scram.SHA256.Name()
	case "scram-sha-512":
		return scram.SHA512.Name()
	}
	return "PLAIN"
}

func (m *mechanism) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	user, password := m.c.conf.User, renew(m.c, &m.c.password, m.c.conf.password)
	var inner sasl.Mechanism = plain.Mechanism{Username: user, Password: password}
	var err error
	switch m.c.conf.SASL {
	case "scram-sha-256":
		inner, err = scram.Mechanism(scram.SHA256, user, password)
	case "scram-sha-512":
		inner, err = scram.Mechanism(scram.SHA512, user, password)
	}
	if err != nil {
		return nil, nil, &Error{Kind: Login, Err: err}
	}
	state, first, err := inner.Start(ctx)
	if err != nil {
		return nil, nil, &Error{Kind: Login, Err: err}
	}
	return &login{state}, first, nil
}

// login is a login whose errors are marked as such.
type login struct{ sasl.StateMachine }

func (s *login) Next(ctx context.Context, challenge []byte) (bool, []byte, error) {
	done, response, err := s.StateMachine.Next(ctx, challenge)
	if err != nil {
		err = &Error{Kind: Login, Err: err}
	}
	return done, response, err
}
