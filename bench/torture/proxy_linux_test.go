//go:build torture

package torture

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

// proxy stands between the collector and its store and does what proxies do.
type proxy struct {
	*httptest.Server
	to   string
	mode atomic.Pointer[mode]
	hits atomic.Int64 // writes that it did something to
}

// mode handles a write. It gives false to let it pass.
type mode func(p *proxy, w http.ResponseWriter, r *http.Request) bool

func newProxy(t *testing.T, server *servertest.Influx) *proxy {
	p := &proxy{to: server.URL}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := p.mode.Load(); m != nil && r.Method == http.MethodPost && r.URL.Path == "/api/v2/write" && (*m)(p, w, r) {
			p.hits.Add(1)
			return
		}
		p.pass(w, r)
	}))
	p.Config.ErrorLog = nil
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) set(m mode) {
	if m == nil {
		p.mode.Store(nil)
		return
	}
	p.mode.Store(&m)
}

// forward asks the store.
func (p *proxy) forward(r *http.Request, body []byte) (*http.Response, error) {
	q, err := http.NewRequest(r.Method, p.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header = r.Header.Clone()
	return http.DefaultTransport.RoundTrip(q)
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	resp, err := p.forward(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// reset ends a connection by RST.
func reset(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// html answers with a page, as some proxies do.
func html(status int) mode {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<html><body><h1>%d %s</h1>The plain HTTP request was sent to HTTPS port</body></html>", status, http.StatusText(status))
		return true
	}
}

// tooLarge answers 413 to requests of more than so many bytes.
func tooLarge(most int) mode {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return true
		}
		plain := body
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
				plain, _ = io.ReadAll(z)
			}
		}
		if len(plain) > most {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			io.WriteString(w, "<html><h1>413 Request Entity Too Large</h1></html>")
			return true
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}
}

// resetRequest reads a part of a request and resets the connection.
func resetRequest(p *proxy, w http.ResponseWriter, r *http.Request) bool {
	io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	reset(w)
	return true
}

// resetAnswer lets the store take the write, and loses its answer.
func resetAnswer(p *proxy, w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return true
	}
	if resp, err := p.forward(r, body); err == nil {
		resp.Body.Close()
	}
	reset(w)
	return true
}

// slowly lets writes pass after a while, which may be longer than the collector waits.
func slowly(wait func() time.Duration) mode {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return true
		}
		time.Sleep(wait())
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.pass(w, r)
		return true
	}
}

func storeRows() []row {
	through := func(m mode, stays bool, problem bool) func(t *testing.T, r *result) {
		return func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			x := newProxy(t, server)
			p := newPlace(t, placeOptions{server: server, store: x.URL})
			c := p.start()
			s := newSender(t, p.udp)
			if stays {
				x.set(m)
			}
			s.send(1000, rate)
			for range short(1, 10) {
				x.set(m)
				s.send(4000, rate)
				if status, body := c.get("/readyz"); problem && status == http.StatusOK {
					t.Errorf("ready while the way to the store is barred: %s", body)
				}
				if !stays {
					x.set(nil)
				}
				s.send(1000, rate)
			}
			s.trailer()
			c.drained()
			if status, body := c.get("/readyz"); status != http.StatusOK && !stays {
				t.Errorf("not ready when everything is well again: %s", body)
			}
			c.stop()
			if x.hits.Load() == 0 {
				t.Error("nothing happened to a write, so nothing was tested")
			}
			r.Remark = fmt.Sprintf("%d writes hit", x.hits.Load())
			p.balance(r, s.sent.Load(), true)
		}
	}
	between := func(lo, hi time.Duration) func() time.Duration {
		return func() time.Duration { return lo + time.Duration(time.Now().UnixNano())%(hi-lo) }
	}
	return []row{
		{name: "slow store (300 to 900 ms a write)", run: through(slowly(between(300*time.Millisecond, 900*time.Millisecond)), false, false)},
		{name: "store slower than the timeout, which takes the write", run: through(slowly(between(1800*time.Millisecond, 2600*time.Millisecond)), false, false)},
		{name: "proxy: 200 with HTML", run: through(html(200), false, false)},
		{name: "proxy: 400 with HTML", run: through(html(400), false, true)},
		{name: "proxy: 422 with HTML", run: through(html(422), false, true)},
		{name: "proxy: 404 with HTML", run: through(html(404), false, false)},
		{name: "proxy: 502 with HTML", run: through(html(502), false, false)},
		{name: "proxy: 413 above 4000 bytes", run: through(tooLarge(4000), true, false)},
		{name: "connections reset in the middle of requests", run: through(resetRequest, false, false)},
		{name: "answers lost after the store took the write", run: through(resetAnswer, false, false)},
	}
}
