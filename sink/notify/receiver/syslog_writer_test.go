package receiver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

func syslogWriter(t *testing.T, network, address string, change func(*Syslog)) *SyslogWriter {
	t.Helper()
	var c Syslog
	c.SetDefaults()
	c.Network, c.Address, c.Hostname = network, address, "host"
	if change != nil {
		change(&c)
	}
	w, err := newSyslog(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// stream is a receiver of counted messages.
type stream struct {
	t        *testing.T
	listener net.Listener
	messages chan string
	conns    chan net.Conn
}

func listen(t *testing.T, l net.Listener) *stream {
	s := &stream{t: t, listener: l, messages: make(chan string, 1000), conns: make(chan net.Conn, 100)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns <- c
			go s.read(c)
		}
	}()
	return s
}

// read takes messages apart as RFC 6587 §3.4.1 has them: a number, a space, and so many bytes.
func (s *stream) read(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		count, err := r.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSuffix(count, " "))
		if err != nil || count[0] == '0' {
			s.t.Errorf("%q is no count", count)
			return
		}
		m := make([]byte, n)
		if _, err := io.ReadFull(r, m); err != nil {
			return
		}
		s.messages <- string(m)
	}
}

func next(t *testing.T, messages <-chan string) string {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(testkit.Patience):
		t.Fatal("no message comes")
		return ""
	}
}

func tcpListener(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// certificate makes a key for 127.0.0.1, and a file with its certificate.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// datagrams reads a socket.
func datagrams(c net.PacketConn) <-chan string {
	messages := make(chan string, 1000)
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, _, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			messages <- string(b[:n])
		}
	}()
	return messages
}

// Over each network the same messages come, one an alert, without what only refreshes.
func TestNetworks(t *testing.T) {
	cert, ca := certificate(t)
	for network, open := range map[string]func() (string, <-chan string){
		"udp": func() (string, <-chan string) {
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c.LocalAddr().String(), datagrams(c)
		},
		"unix": func() (string, <-chan string) {
			path := filepath.Join(t.TempDir(), "log")
			c, err := net.ListenPacket("unixgram", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return path, datagrams(c)
		},
		"tcp": func() (string, <-chan string) {
			s := listen(t, tcpListener(t, "127.0.0.1:0"))
			return s.listener.Addr().String(), s.messages
		},
		"tls": func() (string, <-chan string) {
			s := listen(t, tls.NewListener(tcpListener(t, "127.0.0.1:0"), &tls.Config{Certificates: []tls.Certificate{cert}}))
			return s.listener.Addr().String(), s.messages
		},
	} {
		t.Run(network, func(t *testing.T) {
			address, messages := open()
			w := syslogWriter(t, network, address, func(c *Syslog) {
				if network == "tls" {
					c.CAFile = ca
				}
				c.MaxBytes = 600
			})
			long := syslogAlert(notify.Firing, "critical", "link 7–9")
			long.Text = strings.Repeat("\n]€", 1500)
			alerts := []notify.Alert{syslogAlert(notify.Firing, "warning", "node 1"), syslogAlert(notify.Open, "warning", "node 1"), long,
				{Status: notify.Heartbeat, Text: "at work", Updated: at}, syslogAlert(notify.Resolved, "warning", "node 1")}
			for range 2 {
				if err := w.Write(t.Context(), notify.Batch(alerts)); err != nil {
					t.Fatal(err)
				}
				for _, i := range []int{0, 2, 4} {
					m := next(t, messages)
					if want := string(w.form.messageOf(&alerts[i])); m != want {
						t.Errorf("got  %q\nwant %q", m, want)
					}
					parse(t, []byte(m))
				}
			}
			if l := w.Limits(); len(l) != 1 || l[0].N != 2 {
				t.Errorf("%+v, want the long message to be cut twice", l)
			}
			beating := syslogWriter(t, network, address, func(c *Syslog) {
				c.Heartbeats = true
				if network == "tls" {
					c.CAFile = ca
				}
			})
			if err := beating.Write(t.Context(), notify.Batch(alerts[3:4])); err != nil {
				t.Fatal(err)
			}
			if m := next(t, messages); !strings.Contains(m, "at work") {
				t.Errorf("%q", m)
			}
		})
	}
}

// A stream that the receiver closes is opened again before the next message, which is not lost in it.
func TestConnectsAgain(t *testing.T) {
	s := listen(t, tcpListener(t, "127.0.0.1:0"))
	w := syslogWriter(t, "tcp", s.listener.Addr().String(), nil)
	for i := range 5 {
		if err := w.Write(t.Context(), notify.Batch([]notify.Alert{syslogAlert(notify.Firing, "warning", fmt.Sprint("node ", i))})); err != nil {
			t.Fatal(err)
		}
		if m := next(t, s.messages); !strings.Contains(m, fmt.Sprint("node ", i)) {
			t.Errorf("message %d: %q", i, m)
		}
		(<-s.conns).Close()
		<-w.link.ended
	}
}

// What errors mean: what only a person can mend is said so, and all of it is tried again.
func TestErrors(t *testing.T) {
	cert, _ := certificate(t)
	refused := testkit.FreeAddr(t)
	quiet := tcpListener(t, "127.0.0.1:0") // accepts, and reads nothing
	defer quiet.Close()
	secure := listen(t, tls.NewListener(tcpListener(t, "127.0.0.1:0"), &tls.Config{Certificates: []tls.Certificate{cert}}))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := notify.Batch([]notify.Alert{syslogAlert(notify.Firing, "warning", "node 1")})
	for _, tt := range []struct {
		name, network, address string
		config                 bool
	}{
		{"nobody listens", "tcp", refused, false},
		{"nobody listens for TLS", "tls", refused, false},
		{"an unknown authority", "tls", secure.listener.Addr().String(), true},
		{"no socket", "unix", filepath.Join(t.TempDir(), "none"), true},
		{"no directory", "unix", filepath.Join(file, "log"), true},
	} {
		err := syslogWriter(t, tt.network, tt.address, nil).Write(t.Context(), b)
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || re.Config != tt.config {
			t.Errorf("%s: Write = %v", tt.name, err)
		}
	}
	// A receiver that accepts and says nothing costs the timeout, and an ended context less.
	silent := syslogWriter(t, "tls", quiet.Addr().String(), func(c *Syslog) { c.Timeout = 100 * time.Millisecond })
	if _, ok := errors.AsType[*sink.RetryError](silent.Write(t.Context(), b)); !ok {
		t.Error("a receiver that says nothing: no error that may pass")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := syslogWriter(t, "tcp", quiet.Addr().String(), nil).Write(ctx, b); !errors.Is(err, over) {
		t.Errorf("with an ended context: %v", err)
	}
}

// A datagram socket whose receiver is started anew takes messages again.
func TestSocketAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w := syslogWriter(t, "unix", path, nil)
	b := notify.Batch([]notify.Alert{syslogAlert(notify.Firing, "warning", "node 1")})
	for range 3 {
		c, err := net.ListenPacket("unixgram", path)
		if err != nil {
			t.Fatal(err)
		}
		messages := datagrams(c)
		for err = w.Write(t.Context(), b); err != nil; err = w.Write(t.Context(), b) {
			if sink.Permanent(err) {
				t.Fatal(err)
			}
		}
		next(t, messages)
		c.Close()
		os.Remove(path)
		if err := w.Write(t.Context(), b); err == nil || sink.Permanent(err) {
			t.Errorf("without a receiver: %v", err)
		}
	}
}

// A receiver that is away and comes back gets every alert once, in order.
func TestAwayAndBackOfSyslog(t *testing.T) {
	address := testkit.FreeAddr(t)
	conf := sink.DefaultQueueConfig()
	conf.RetryMin, conf.RetryMax = time.Millisecond, 20*time.Millisecond
	tally := &sink.Tally{}
	q := sink.NewQueue(syslogWriter(t, "tcp", address, nil), conf, sink.QueueOptions{Account: tally})
	q.Start()
	const n = 20
	for i := range n {
		if err := q.Put(t.Context(), notify.Batch([]notify.Alert{syslogAlert(notify.Firing, "warning", fmt.Sprint("node ", i))})); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "the receiver was missed", func() bool { return q.Stats().Retries >= 3 })
	s := listen(t, tcpListener(t, address))
	for i := range n {
		if m := next(t, s.messages); !strings.Contains(m, fmt.Sprintf(`element="node %d"`, i)) {
			t.Errorf("message %d: %q", i, m)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if tally.PointsAt(sink.Stored) != n || len(s.messages) != 0 {
		t.Errorf("%d stored, %d more messages", tally.PointsAt(sink.Stored), len(s.messages))
	}
}

// The name of a receiver of datagrams is looked up again after some time; streams stay.
func TestLooksUpAgain(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := listen(t, tcpListener(t, "127.0.0.1:0"))
	for network, address := range map[string]string{"udp": c.LocalAddr().String(), "tcp": s.listener.Addr().String()} {
		w := syslogWriter(t, network, address, nil)
		if err := w.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if w.link.over(now) || w.link.over(now.Add(lookUp-time.Second)) || w.link.over(now.Add(lookUp+time.Second)) != (network == "udp") {
			t.Errorf("%s: the end is %v", network, w.link.until)
		}
	}
}
