package kafka

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// of returns settings for the broker's address and the topics of the test.
func of(b *servertest.Broker) Config {
	c := DefaultConfig()
	c.Brokers, c.Prefix = []string{b.Addr}, b.Prefix
	return c
}

func dial(t *testing.T, c Config) *Client {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	client, err := c.Dial("hopscope-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// put writes a record to partition 0 of topic windows.
func put(c *Client, value string) error {
	topic := c.Topic(Windows)
	resp, err := c.Produce(context.Background(), &kafka.ProduceRequest{
		Topic: topic, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Time: time.Now(), Value: kafka.NewBytes([]byte(value))}),
	})
	if err == nil {
		err = resp.Error
	}
	return c.Explain(err, ToWrite(topic))
}

func wants(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind {
		t.Errorf("%v (%T), want one of kind %d", err, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlaintext(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	wants(t, put(dial(t, c), "x"), NoTopic, "write topic "+b.Prefix+"windows", "hopscope kafka topics create")
	b.CreateTopic(c.Topic(Windows), 1, "max.message.bytes=1000")
	client := dial(t, c)
	if err := put(client, "x"); err != nil {
		t.Fatal(err)
	}
	wants(t, put(client, strings.Repeat("x", 2000)), TooLarge, "max.message.bytes")

	c.TLS = true
	wants(t, put(dial(t, c), "x"), unreachable, "may not speak TLS", "kafka.tls")
	c.TLS, c.Brokers = false, []string{"127.0.0.1:1"}
	err := put(dial(t, c), "x")
	wants(t, err, unreachable, "127.0.0.1:1", "refused")
	if e := (*Error)(nil); errors.As(err, &e) && e.NeedsPerson() {
		t.Error("a broker that is away comes back without anybody")
	}
	if got := b.Read(b.Prefix+"windows", 0, 0); len(got) != 1 {
		t.Errorf("%d records, want 1", len(got))
	}
}

// TestLogin logs in by all mechanisms, and wrongly, and with a password that is renewed.
func TestLogin(t *testing.T) {
	testkit.Long(t)
	b := servertest.StartBroker(t, servertest.BrokerOptions{TLS: true, Users: []string{"alice"}})
	b.CreateTopic(b.Prefix+"windows", 1)
	secure := of(b)
	secure.TLS, secure.CAFile, secure.User = true, b.Authority.File, "alice"
	secret, wrong := servertest.Password("alice"), "of-somebody-else"
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			c := secure
			c.SASL, c.PasswordFile = mechanism, file(t, secret+"\n")
			client := dial(t, c)
			if err := put(client, mechanism); err != nil {
				t.Fatal(err)
			}
			// A connection that is open stays so, and a new one logs in with what the file has then.
			if err := os.WriteFile(c.PasswordFile, []byte(wrong), 0o600); err != nil {
				t.Fatal(err)
			}
			client.Close()
			err := put(client, mechanism)
			wants(t, err, Login, "kafka.user (alice)", mechanism)
			if strings.Contains(err.Error(), wrong) {
				t.Errorf("%q has the password", err)
			}
			if err := os.Remove(c.PasswordFile); err != nil {
				t.Fatal(err)
			}
			// A connection that was begun before may be the one that is refused: the next one looks for the file.
			p := ""
			for end := time.Now().Add(testkit.Patience); !strings.Contains(p, "password_file") && time.Now().Before(end); p = client.Problem() {
				client.Close()
				wants(t, put(client, mechanism), Login)
			}
			if !strings.Contains(p, "password_file") {
				t.Errorf("problem %q does not name the file", p)
			}
			if err := os.WriteFile(c.PasswordFile, []byte(secret), 0o600); err != nil {
				t.Fatal(err)
			}
			client.Close()
			if err := put(client, mechanism); err != nil {
				t.Fatal(err)
			}
			if p := client.Problem(); p != "" {
				t.Errorf("problem %q is over", p)
			}
		})
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv("KAFKA_PASSWORD_OF_TESTS", secret)
		c := secure
		c.SASL, c.PasswordEnv = "plain", "KAFKA_PASSWORD_OF_TESTS"
		if err := put(dial(t, c), "environment"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("none", func(t *testing.T) {
		c := secure
		c.User = ""
		wants(t, put(dial(t, c), "none"), unreachable, "ended the connection", "kafka.sasl")
	})
	t.Run("no TLS", func(t *testing.T) {
		c := of(b)
		c.SASL, c.User, c.PasswordFile = "plain", "alice", file(t, secret)
		wants(t, put(dial(t, c), "none"), unreachable, "ended the connection", "kafka.tls")
	})
	t.Run("unknown authority", func(t *testing.T) {
		c := secure
		c.SASL, c.PasswordFile, c.CAFile = "plain", file(t, secret), servertest.NewAuthority(t).File
		wants(t, put(dial(t, c), "x"), untrusted, "authority that is not known", "kafka.ca_file")
	})
	t.Run("wrong name", func(t *testing.T) {
		c := secure
		c.SASL, c.PasswordFile, c.ServerName = "plain", file(t, secret), "kafka.example"
		wants(t, put(dial(t, c), "x"), untrusted, "kafka.example", "kafka.server_name")
		c.ServerName = "localhost"
		if err := put(dial(t, c), "named"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("group", func(t *testing.T) { // the other kind of connections
		c := secure
		c.SASL, c.PasswordFile = "scram-sha-256", file(t, secret)
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		conn, err := dial(t, c).dialer().DialLeader(ctx, "tcp", b.Addr, b.Prefix+"windows", 0)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

// TestRenewedCertificate: the authority of both sides changes, and the files with it, while the client goes on.
func TestRenewedCertificate(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{TLS: true, ClientCerts: true})
	b.CreateTopic(b.Prefix+"windows", 1)
	c := of(b)
	c.TLS, c.CAFile = true, file(t, "")
	copyFile(t, b.Authority.File, c.CAFile)
	wants(t, put(dial(t, c), "no certificate"), untrusted, "kafka.cert_file")
	c.CertFile, c.KeyFile = b.Authority.Issue("collector")
	client := dial(t, c)
	if err := put(client, "old"); err != nil {
		t.Fatal(err)
	}

	next := servertest.NewAuthority(t)
	b.Stop()
	b.Certify(next)
	b.Start()
	client.Close()
	wants(t, put(client, "before the renewal"), untrusted, "not known")

	copyFile(t, next.File, c.CAFile)
	next.IssueTo("collector", c.CertFile, c.KeyFile)
	client.Close()
	if err := put(client, "new"); err != nil {
		t.Fatal(err)
	}
	// In the middle of a renewal the key is not that of the certificate.
	_, other := next.Issue("collector")
	copyFile(t, other, c.KeyFile)
	client.Close()
	if err := put(client, "newer"); err != nil {
		t.Fatal(err)
	}
	if p := client.Problem(); !strings.Contains(p, "cert_file") {
		t.Errorf("problem %q does not name the file", p)
	}
	var got []string
	for _, m := range b.Read(b.Prefix+"windows", 0, 0) {
		got = append(got, string(m.Value))
	}
	if s := strings.Join(got, " "); s != "old new newer" {
		t.Errorf("the topic has %q", s)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDenied has a user that may do nothing, and then what the error asks for.
func TestDenied(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{Users: []string{"alice"}, ACLs: true})
	topic := b.Prefix + "windows"
	b.CreateTopic(topic, 1)
	c := of(b)
	c.SASL, c.User, c.PasswordFile = "scram-sha-512", "alice", file(t, servertest.Password("alice"))
	client := dial(t, c)
	wants(t, put(client, "x"), denied, "allow User:alice the operation Write on topic "+topic)
	b.Allow("alice", "Write", "topic", topic)
	testkit.Until(t, "the ACL helps", func() bool { return put(client, "y") == nil })
	b.Forbid("alice", "Write", "topic", topic)
	b.Allow("alice", "Describe", "topic", topic)
	wants(t, put(client, "z"), denied, "operation Write")
}
