package receiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// SyslogWriter sends messages to one receiver.
type SyslogWriter struct {
	conf Syslog
	tls  *tls.Config
	form form
	link *link // nil without a connection
	cut  atomic.Uint64
}

// link is a connection and the state of its end.
type link struct {
	net.Conn
	ended chan struct{} // closed when the receiver has closed it; nil for datagrams
	until time.Time     // when the name of the receiver is looked up again; never for streams
}

// newSyslog reads the certificates. It does not connect.
func newSyslog(conf Syslog) (*SyslogWriter, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	w := &SyslogWriter{conf: conf}
	if conf.Network == "tls" {
		var err error
		if w.tls, err = conf.TLS.Config(); err != nil {
			return nil, err
		}
		w.tls.ServerName, _, _ = net.SplitHostPort(conf.Address)
	}
	host := conf.Hostname
	if host == "" {
		name, _ := os.Hostname() // without one the field is -
		host = headerWord(name, 255)
	}
	if host == "" {
		host = "-"
	}
	w.form = form{facility: max(slices.Index(facilities, conf.Facility), 0), hostname: host, app: conf.AppName, sd: conf.SDID, max: conf.MaxBytes}
	return w, nil
}

// Limits lists what the settings limit.
func (w *SyslogWriter) Limits() []inference.Limit {
	return []inference.Limit{{Setting: "syslog.max_bytes", N: w.cut.Load(), What: "messages of syslog were sent with a text that was cut"}}
}

// Name is "syslog".
func (w *SyslogWriter) Name() string { return "syslog" }

// Key implements [sink.Keyed].
func (w *SyslogWriter) Key(p *sink.Point) string { return notify.PointKey(p) }

// Close ends the connection.
func (w *SyslogWriter) Close() error {
	w.hangUp()
	return nil
}

// Write sends the alerts of a batch, each as a message. An error names the remaining ones.
func (w *SyslogWriter) Write(ctx context.Context, b *sink.Batch) error {
	return notify.Each(ctx, b, w.send)
}

func (w *SyslogWriter) send(ctx context.Context, a *notify.Alert) error {
	if a.Status == notify.Open || a.Status == notify.Heartbeat && !w.conf.Heartbeats {
		return notify.ErrUnwanted
	}
	message := w.form.messageOf(a)
	cut := bytes.HasSuffix(message, []byte(cutSign))
	if w.conf.Network == "tcp" || w.conf.Network == "tls" { // octet counting
		message = append(append(strconv.AppendInt(nil, int64(len(message)), 10), ' '), message...)
	}
	if w.link != nil && w.link.over(time.Now()) {
		w.hangUp()
	}
	if w.link == nil {
		if err := w.connect(ctx); err != nil {
			return w.failed(ctx, "connect", err)
		}
	}
	l := w.link
	l.SetWriteDeadline(time.Now().Add(w.conf.Timeout))
	stop := context.AfterFunc(ctx, func() { l.SetWriteDeadline(time.Unix(1, 0)) })
	_, err := l.Write(message)
	stop()
	if err != nil {
		w.hangUp()
		return w.failed(ctx, "send", err)
	}
	if cut {
		w.cut.Add(1)
	}
	return nil
}

// failed classifies an error. A message that is too large for the system stays so.
func (w *SyslogWriter) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := fmt.Errorf("syslog: %s: %w", what, err)
	if errors.Is(err, syscall.EMSGSIZE) {
		return &sink.PermanentError{Err: e}
	}
	return &sink.RetryError{Err: e, Doubt: what == "send", Config: peer.WrongSecurity(err) || sink.NeedsPerson(err)}
}

func (w *SyslogWriter) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.conf.Timeout)
	defer cancel()
	var conn net.Conn
	var err error
	switch w.conf.Network {
	case "tls":
		conn, err = (&tls.Dialer{Config: w.tls}).DialContext(ctx, "tcp", w.conf.Address)
	case "unix":
		conn, err = (&net.Dialer{}).DialContext(ctx, "unixgram", w.conf.Address)
	default:
		conn, err = (&net.Dialer{}).DialContext(ctx, w.conf.Network, w.conf.Address)
	}
	if err != nil {
		return err
	}
	w.link = &link{Conn: conn}
	if w.tls != nil || w.conf.Network == "tcp" {
		w.link.ended = make(chan struct{})
		go w.link.watch()
	} else {
		w.link.until = time.Now().Add(lookUp)
	}
	return nil
}

// watch waits for the end of a stream. The first write behind it would succeed, and its message be lost.
func (l *link) watch() {
	io.Copy(io.Discard, l.Conn) // receivers say nothing
	close(l.ended)
}

// lookUp is how often the name of a receiver of datagrams is looked up, since nothing signals that it has moved.
const lookUp = 5 * time.Minute

// over reports whether the receiver has closed the connection, or may have moved.
func (l *link) over(now time.Time) bool {
	select {
	case <-l.ended: // a nil channel never is
		return true
	default:
		return !l.until.IsZero() && now.After(l.until)
	}
}

func (w *SyslogWriter) hangUp() {
	if w.link == nil {
		return
	}
	w.link.Close()
	if w.link.ended != nil {
		<-w.link.ended
	}
	w.link = nil
}
