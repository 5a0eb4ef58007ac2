package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// pipeListener is a network inside the process, so that a test's clock can be synctest's.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
}

func (l *pipeListener) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// running is a server on a pipeListener.
type running struct {
	*Server
	l    *pipeListener
	stop func() error
}

func runPiped(t *testing.T, cfg Config, deps Deps) *running {
	t.Helper()
	srv, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	srv.listener = l
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	s := &running{srv, l, sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// stream is an open event stream.
type stream struct {
	conn net.Conn
	r    *bufio.Reader
	body *bufio.Reader
}

// open asks for events by hand, to be able to stop reading.
func (s *running) open(t *testing.T, last string) *stream {
	t.Helper()
	conn, err := s.l.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	head := "GET /api/events HTTP/1.1\r\nHost: localhost\r\n"
	if last != "" {
		head += "Last-Event-ID: " + last + "\r\n"
	}
	go func() { _, _ = io.WriteString(conn, head+"\r\n") }() // a failed write shows as a failed read
	st := &stream{conn: conn, r: bufio.NewReader(conn)}
	res, err := http.ReadResponse(st.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	st.body = bufio.NewReader(res.Body)
	return st
}

// next reads one event.
func (st *stream) next(t *testing.T) (kind, id, data string) {
	t.Helper()
	for {
		line, err := st.body.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			return kind, id, data
		default:
			t.Fatalf("unexpected line %q", line)
		}
	}
}

// want reads events up to one of that kind, passing over the kinds in over.
func (st *stream) want(t *testing.T, kind string, over ...string) (id, data string) {
	t.Helper()
	for {
		k, id, data := st.next(t)
		if k == kind {
			return id, data
		}
		passed := false
		for _, o := range over {
			passed = passed || o == k
		}
		if !passed {
			t.Fatalf("event %q, want %q", k, kind)
		}
	}
}

func findingN(n int) []inference.Finding {
	return []inference.Finding{{ID: uint64(n), Kind: inference.HighQueue, Severity: inference.Warning, Start: int64(n) * second, Node: 3, Text: fmt.Sprint("finding ", n)}}
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		st := s.open(t, "")
		if id, _ := st.want(t, "hello"); id != s.ring.id(0) {
			t.Errorf("hello has id %q, want %q", id, s.ring.id(0))
		}
		emit(s.Server, findingN(1))
		if _, data := st.want(t, "finding", "ledger"); !strings.Contains(data, `"text":"finding 1"`) {
			t.Errorf("finding: %s", data)
		}
		for range 3 { // three parts of one window are one event
			w := hopWindow(7*second, hopAt(1, 1, 5))
			w.Reports = 5
			write(s.Server, sink.NewWindow("here", w, nil))
		}
		if _, data := st.want(t, "window"); data != `{"end_ms":7000,"reports":15,"hops":1}` {
			t.Errorf("window: %s", data)
		}
		if _, data := st.want(t, "ledger"); !strings.Contains(data, `"sink":"influx"`) {
			t.Errorf("ledger: %s", data)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.stop() }()
		st.want(t, "bye", "ledger")
		if rest, err := io.ReadAll(st.body); err != nil || len(rest) != 0 {
			t.Errorf("after bye: %q, %v", rest, err)
		}
		begin := time.Now()
		if err := <-ended; err != nil || time.Since(begin) > s.cfg.ShutdownTimeout/2 {
			t.Errorf("Serve ended %v later with %v", time.Since(begin), err)
		}
	})
}

func TestStreamResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		st := s.open(t, "")
		st.want(t, "hello")
		emit(s.Server, findingN(1))
		last, _ := st.want(t, "finding", "ledger")
		_ = st.conn.Close() // the connection breaks
		for n := 2; n < 50; n++ {
			write(s.Server, sink.NewWindow("here", hopWindow(int64(n)*second, hopAt(1, 1, 5)), findingN(n)))
			time.Sleep(time.Second)
		}
		st = s.open(t, last)
		windows, ledgers := 0, 0
		for n := 2; ; {
			kind, _, data := st.next(t)
			switch kind {
			case "window":
				windows++
			case "ledger":
				ledgers++
			case "finding":
				if want := fmt.Sprintf(`"text":"finding %d"`, n); !strings.Contains(data, want) {
					t.Fatalf("finding %s, want %s", data, want)
				}
				n++
			case "resumed":
				if n != 50 {
					t.Errorf("%d findings were resumed, want 48", n-2)
				}
				if windows != 1 || ledgers != 1 {
					t.Errorf("%d windows and %d ledgers were resumed, want the last of each", windows, ledgers)
				}
				emit(s.Server, findingN(50))
				st.want(t, "finding", "ledger", "window")
				return
			default:
				t.Fatalf("event %q", kind)
			}
		}
	})
}

func TestStreamReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		emit(s.Server, findingN(0))
		first := s.ring.id(0)
		for n := range ringEvents {
			emit(s.Server, findingN(n))
		}
		last := s.ring.id(ringEvents + 1)
		for name, id := range map[string]string{
			"too old": first, "from the future": s.ring.id(1 << 40), "of another process": "ABCDEFGHIJ-5", "nonsense": "\x00", "no number": s.ring.epoch + "-", "negative": s.ring.epoch + "--1",
		} {
			if name == "nonsense" {
				id = "%00"
			}
			st := s.open(t, id)
			if got, _ := st.want(t, "reset"); got != last {
				t.Errorf("%s: reset goes on from %q", name, got)
			}
			_ = st.conn.Close() // the next one
		}
	})
}

func TestStreamHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		st := s.open(t, "")
		st.want(t, "hello")
		st.want(t, "ledger") // the first; after that nothing changes but the time
		for range 5 {
			begin := time.Now()
			st.want(t, "ping")
			if quiet := time.Since(begin); quiet != heartbeat {
				t.Errorf("a sign of life after %v, want %v", quiet, heartbeat)
			}
		}
	})
}

// A client that does not read is dropped; no other client notices.
func TestStreamSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPiped(t, DefaultConfig(), sceneDeps(sceneTime))
		slow, quick := s.open(t, ""), s.open(t, "")
		slow.want(t, "hello")
		quick.want(t, "hello")
		for n := range 3 * ringEvents {
			emit(s.Server, findingN(n))
			if _, data := quick.want(t, "finding", "ledger", "ping", "window"); !strings.Contains(data, fmt.Sprintf(`"finding %d"`, n)) {
				t.Fatalf("the other client got %s, want finding %d", data, n)
			}
		}
		for end := time.Now().Add(streamTimeout + time.Second); time.Now().Before(end); {
			quick.next(t)
		}
		if st := s.Stats(); st.StreamsDropped != 1 || st.streams != 1 {
			t.Errorf("%d streams dropped, %d open, want 1, 1", st.StreamsDropped, st.streams)
		}
		if _, err := io.Copy(io.Discard, slow.conn); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the slow client's connection: %v, want it closed", err)
		}
	})
}

func TestStreamLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxStreams = 2
		s := runPiped(t, cfg, sceneDeps(sceneTime))
		a, b := s.open(t, ""), s.open(t, "")
		a.want(t, "hello")
		b.want(t, "hello")
		res := request(s.Server, http.MethodGet, "/api/events")
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("third stream: %s", res.Status)
		}
		_ = a.conn.Close() // makes room
		time.Sleep(heartbeat)
		c := s.open(t, "")
		c.want(t, "hello")
		_, _ = b.conn.Close(), c.conn.Close() // it is over
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.StreamsRefused != 1 || st.streams != 0 {
			t.Errorf("%d refused, %d open, want 1, 0", st.StreamsRefused, st.streams)
		}
	})
}
