package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// Kind is the class of an error by what makes the same request succeed.
type Kind uint8

// The kinds of errors.
const (
	Passing     Kind = iota // it may pass: ask again
	unreachable             // there is no broker at the addresses, at present
	untrusted               // the two sides disagree about TLS
	Login                   // wrong mechanism, user or password
	denied                  // an ACL is missing
	NoTopic                 // the topic is not there, or has too few partitions
	TooLarge                // the topic or the broker takes no record of this size
	Refused                 // Kafka will never take this
)

// Error is the failure of a request, with a text that contains the remedy.
type Error struct {
	Kind Kind
	Op   Op     // what was tried
	Addr string // of the broker, where there was no connection
	Fix  string // what mends it, if that is known
	Err  error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("kafka: ")
	if e.Op.Name != "" {
		b.WriteString(e.Op.String() + ": ")
	}
	if e.Addr != "" {
		b.WriteString("broker " + e.Addr + ": ")
	}
	fmt.Fprint(&b, e.Err)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// NeedsPerson reports whether trying again helps only after an operator has changed a setting, here or in Kafka.
func (e *Error) NeedsPerson() bool {
	switch e.Kind {
	case untrusted, Login, denied, NoTopic:
		return true
	}
	return false
}

// Op is the operation of a request and its resource, in the words of ACLs.
type Op struct {
	ACL      string // operation: Write, Read, Describe, Create
	Resource string // topic, group, cluster
	Name     string
}

// ToWrite, ToRead, ToDescribe and ToJoin are operations that need an ACL each.
func ToWrite(topic string) Op { return Op{"Write", "topic", topic} }

// ToRead is reading the records of a topic.
func ToRead(topic string) Op { return Op{"Read", "topic", topic} }

// ToDescribe is asking for partitions and settings of a topic.
func ToDescribe(topic string) Op { return Op{"Describe", "topic", topic} }

// ToJoin is being a member of a group, and committing its offsets.
func ToJoin(group string) Op { return Op{"Read", "group", group} }

func (o Op) String() string {
	return fmt.Sprintf("%s %s %s", strings.ToLower(o.ACL), o.Resource, o.Name)
}

// Explain makes an *[Error] of an error of kafka-go in an operation. It returns nil and the end of ctx unchanged.
//
// kafka-go hides the reason for a missing topic behind "topic not found", and that for a broken connection behind
// "EOF". Explain asks it for its last reason, which takes no time. It also explains EOF to a client without TLS or
// without a login.
func (c *Client) Explain(err error, do Op) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		out := *e
		out.Op = do
		if out.Kind == Login {
			out.Fix = c.loginFix()
		}
		return &out
	}
	if noPlace(err) || errors.Is(err, context.DeadlineExceeded) {
		if topic, cause := c.cause(do); cause != nil {
			if e := (*Error)(nil); errors.As(cause, &e) {
				return c.Explain(e, do)
			}
			if topic || !noPlace(cause) {
				err = cause
			}
		}
	}
	e := &Error{Kind: Passing, Op: do, Err: bare(err)}
	switch {
	case errors.Is(err, kafka.TopicAuthorizationFailed), errors.Is(err, kafka.GroupAuthorizationFailed),
		errors.Is(err, kafka.ClusterAuthorizationFailed), errors.Is(err, kafka.TransactionalIDAuthorizationFailed):
		e.Kind, e.Err = denied, errors.New("not authorised")
		e.Fix = fmt.Sprintf("allow User:%s the operation %s on %s %s", c.principal, do.ACL, do.Resource, do.Name)
	case errors.Is(err, kafka.SASLAuthenticationFailed), errors.Is(err, kafka.UnsupportedSASLMechanism), errors.Is(err, kafka.IllegalSASLState):
		e.Kind, e.Fix = Login, c.loginFix()
	case errors.Is(err, protocol.ErrNoLeader), errors.Is(err, kafka.BrokerNotAvailable):
	case noPlace(err):
		e.Kind, e.Err = NoTopic, errors.New("the topic, or the partition, is not there")
		e.Fix = "create it with: hopscope kafka topics create"
	case errors.Is(err, kafka.MessageSizeTooLarge), errors.Is(err, kafka.RecordListTooLarge):
		e.Kind, e.Fix = TooLarge, "raise max.message.bytes of the topic, as hopscope kafka topics check says"
	case errors.Is(err, kafka.InvalidMessage), errors.Is(err, kafka.InvalidRecord), errors.Is(err, kafka.InvalidTimestamp),
		errors.Is(err, kafka.UnsupportedForMessageFormat), errors.Is(err, kafka.InvalidTopic):
		e.Kind = Refused
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind, e.Err = unreachable, errors.New("the broker ended the connection")
		switch {
		case !c.conf.TLS && c.conf.SASL == "none":
			e.Fix = "it may want TLS (kafka.tls) or a login (kafka.sasl)"
		case !c.conf.TLS:
			e.Fix = "it may want TLS (kafka.tls)"
		case c.conf.SASL == "none":
			e.Fix = "it may want a login (kafka.sasl)"
		}
	case remoteAlert(err):
		return c.explainTLSOp(err, do)
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Err = unreachable, fmt.Errorf("no answer within %v", c.conf.Timeout)
	case errors.As(err, new(kafka.Error)): // which is a net.Error, too
	case errors.As(err, new(net.Error)):
		e.Kind = unreachable
	}
	return e
}

// bare takes away what kafka-go puts before an error.
func bare(err error) error {
	for {
		text, inner := err.Error(), errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(text, "kafka.(") {
			return err
		}
		err = inner
	}
}

// noPlace reports whether kafka-go had no destination for a request.
func noPlace(err error) bool {
	return errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition) || errors.Is(err, protocol.ErrNoLeader) ||
		errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.BrokerNotAvailable)
}

// cause returns why a request had no destination by the latest metadata. It concerns the topic, or else the
// connection.
func (c *Client) cause(do Op) (topic bool, _ error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.conf.Timeout)
	defer cancel()
	m, err := c.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return false, err
	}
	for _, t := range m.Topics {
		if t.Name != do.Name {
			continue
		}
		if t.Error != nil {
			return true, t.Error
		}
		for _, p := range t.Partitions {
			if p.Error != nil {
				return true, p.Error // it has no leader at present
			}
		}
	}
	return false, nil
}

func (c *Client) loginFix() string {
	return fmt.Sprintf("look at kafka.sasl (%s), kafka.user (%s) and the password", c.conf.SASL, c.conf.User)
}

func remoteAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func (c *Client) explainTLSOp(err error, do Op) error {
	e := c.explainTLS("", err)
	if own, ok := errors.AsType[*Error](e); ok {
		own.Op = do
	}
	return e
}

// explainTLS returns the conflict between the two sides of a TLS connection.
func (c *Client) explainTLS(addr string, err error) error {
	e := &Error{Kind: untrusted, Addr: addr, Err: err}
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		e.Err = errors.New("its certificate is signed by an authority that is not known")
		e.Fix = "name the file of the authority in kafka.ca_file"
	case errors.As(err, &host):
		e.Fix = "name what the certificate carries in kafka.server_name, if it is the right broker"
	case errors.As(err, new(*tls.CertificateVerificationError)):
	case errors.As(err, new(tls.RecordHeaderError)):
		e.Err = errors.New("it does not speak TLS at this address")
		e.Fix = "name the address where it does in kafka.brokers, or turn kafka.tls off"
	case remoteAlert(err):
		e.Fix = "the broker does not take our certificate: look at kafka.cert_file, and at what the broker trusts"
	case errors.Is(err, io.EOF):
		e.Kind, e.Err = unreachable, errors.New("the broker ended the connection")
		e.Fix = "it may not speak TLS at this address (kafka.tls)"
	default:
		e.Kind = unreachable
	}
	return e
}
