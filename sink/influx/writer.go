package influx

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api"

	"github.com/hopscope/hopscope/sink"
)

// writer writes to one bucket. Encode may be called beside the writing methods, which belong to one goroutine.
type writer struct {
	conf       Config
	token      string
	client     influxdb2.Client
	transport  *http.Transport
	api        api.WriteAPIBlocking
	buf        []byte // of Write
	size       size
	generation atomic.Uint32 // of type generation
	named      []refusedLine // refused lines of the last request, if the server named them
	progress   *progress     // of the payload that was not written to its end; nil without one
	stats      counters
}

type counters struct {
	requests, points, bytes, refused, splits, fieldsDropped, pointsDropped atomic.Uint64
}

// Stats are totals since the start.
type Stats struct {
	Requests      uint64 // sent, whatever the answer
	Points        uint64 // stored; again when a request was repeated
	Bytes         uint64 // of line protocol sent, before compression
	Refused       uint64 // points that the server will never accept
	Splits        uint64 // requests spent on separating refused points from good ones
	FieldsDropped uint64 // not finite
	PointsDropped uint64 // nothing left to write after that
}

// New reads the token and the certificates. It does not connect: a server that is down at the start is a server that
// is down.
func New(conf Config) (*writer, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	token, err := conf.token()
	if err != nil {
		return nil, err
	}
	transport, err := conf.TLS.Transport(conf.Timeout, maxAnswer)
	if err != nil {
		return nil, err
	}
	opt := influxdb2.DefaultOptions()
	opt.SetApplicationName("hopscope").SetUseGZip(conf.Gzip)
	opt.SetHTTPClient(&http.Client{
		Transport: guard{transport},
		Timeout:   conf.Timeout,
		// A POST that is redirected may become a GET, whose success proves nothing about the points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	client := influxdb2.NewClientWithOptions(strings.TrimSuffix(conf.URL, "/"), token, opt)
	return &writer{conf: conf, token: token, client: client, transport: transport, api: client.WriteAPIBlocking(conf.Org, conf.Bucket)}, nil
}

// Name is "influx".
func (w *writer) Name() string { return "influx" }

// Close ends idle connections.
func (w *writer) Close() error {
	w.client.Close()
	w.transport.CloseIdleConnections()
	return nil
}

// Stats may be called at any time.
func (w *writer) Stats() Stats {
	s := &w.stats
	return Stats{
		Requests: s.requests.Load(), Points: s.points.Load(), Bytes: s.bytes.Load(), Refused: s.refused.Load(),
		Splits: s.splits.Load(), FieldsDropped: s.fieldsDropped.Load(), PointsDropped: s.pointsDropped.Load(),
	}
}

// Encode appends b as line protocol.
func (w *writer) Encode(dst []byte, b *sink.Batch) ([]byte, uint64) {
	dst, fields, points := sink.AppendPoints(dst, b.Points, AppendPoint)
	if fields|points != 0 {
		w.stats.fieldsDropped.Add(fields)
		w.stats.pointsDropped.Add(points)
	}
	return dst, points
}

// Write stores b.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	w.buf, _ = w.Encode(w.buf[:0], b)
	return w.WriteEncoded(ctx, w.buf)
}

// WriteEncoded stores line protocol, in requests of at most Config.BatchPoints points. It continues after refused
// points, and stops at the first error that may pass. The next call with the same payload resumes there. It sends no
// stored point again, and repeats no request whose answer was a refusal.
func (w *writer) WriteEncoded(ctx context.Context, payload []byte) error {
	p := w.progress
	w.progress = nil
	if p == nil || !bytes.Equal(p.payload, payload) {
		p = &progress{pending: []part{{lines: payload}}}
		if len(payload) == 0 {
			p.pending = nil
		}
	}
	if err := w.work(ctx, p); err != nil {
		w.progress = p.keep(payload)
		return err
	}
	return p.refusals.err()
}

// Part implements [sink.Parter]. Points of one series and time replace each other.
func (w *writer) Part(payload []byte, held func(key string) bool) (behind, rest sink.Refusal, err error) {
	behind, rest = sink.PartLines(payload, nextLine, placeOf, measurementOf, held)
	return behind, rest, nil
}

// progress is how far a payload has come.
type progress struct {
	payload  []byte // which one
	pending  []part
	refusals refusals
}

// part is some of the points of a payload that have still to be sent.
type part struct {
	lines   []byte
	suspect bool // there are refused ones among them
	last    bool // it was put behind all others
}

// keep copies the lines of p, because the memory of payload belongs to the caller.
func (p *progress) keep(payload []byte) *progress {
	p.payload = append([]byte{}, payload...)
	for i := range p.pending {
		p.pending[i].lines = append([]byte{}, p.pending[i].lines...)
	}
	return p
}

// work sends the pending parts. It divides refused requests until the refused points stand alone. One call spends at
// most Config.SplitRequests requests on that.
func (w *writer) work(ctx context.Context, p *progress) error {
	budget := max(w.conf.SplitRequests, 1)
	for len(p.pending) > 0 {
		next := p.pending[0]
		if next.suspect {
			if budget == 0 {
				return &sink.RetryError{Progress: true, Err: fmt.Errorf(
					"influx: among %d points there are some that the server refuses; separating them from the others goes on", p.points())}
			}
			budget--
			w.stats.splits.Add(1)
		}
		lines, cut := w.cut(next.lines)
		v, e, after, dropped := w.send(ctx, lines)
		n := countLines(lines)
		if v == retry || v == config {
			return retryError(ctx, v, e, after)
		}
		if v == large {
			w.size.tooLarge(len(lines))
			if n > 1 {
				continue // with less
			}
		}
		if next.lines = next.lines[len(lines):]; len(next.lines) > 0 {
			p.pending[0] = next
		} else {
			p.pending = p.pending[1:]
		}
		switch {
		case v == stored:
			w.size.passed(len(lines), cut)
			w.stats.points.Add(uint64(n))
		case v == refused && len(w.named) > 0:
			if some := w.refuse(p, lines, e); some > 0 {
				w.stats.points.Add(uint64(n - some))
				break
			}
			p.pending = append(w.separate(p, lines, e), p.pending...) // it named none that there is
		case v == large && w.size.any, v == refused && dropped == n: // no server names more than it has refused
			p.refusals.add(lines, n, e)
		case v == refused:
			p.pending = append(w.separate(p, lines, e), p.pending...)
		case !next.last: // whether anything passes at all is seen with the others
			p.pending = append(p.pending, part{lines: lines, suspect: next.suspect, last: true})
		default:
			p.pending = append(p.pending, part{lines: lines, last: true})
			e.Message = strings.TrimSpace(fmt.Sprintf("a request of %d bytes with one point is too large, and none has passed yet: "+
				"raise the limit of the server, or of the proxy before it. %s", len(lines), e.Message))
			return retryError(ctx, config, e, after)
		}
	}
	w.stats.refused.Add(uint64(p.refusals.points))
	return nil
}

// separate divides lines of which some are refused. A single line is refused itself.
func (w *writer) separate(p *progress, lines []byte, e *Error) (pieces []part) {
	if n := countLines(lines); n == 1 {
		p.refusals.add(lines, n, e)
		return nil
	}
	for _, piece := range divide(lines) {
		pieces = append(pieces, part{lines: piece, suspect: true})
	}
	return pieces
}

// points is the number of points that are pending.
func (p *progress) points() (n int) {
	for i := range p.pending {
		n += countLines(p.pending[i].lines)
	}
	return n
}

func (w *writer) send(ctx context.Context, lines []byte) (verdict, *Error, time.Duration, int) {
	w.stats.requests.Add(1)
	w.stats.bytes.Add(uint64(len(lines)))
	w.named = nil
	if w.known() != third {
		v, e, after, dropped := classify(w.api.WriteRecord(ctx, string(lines)))
		if v == stored || w.known() == older && !partial3(e.Message) || e.Status == 0 {
			return v, e, after, dropped
		}
		if w.askGeneration(ctx, e.Status, e.Message); w.known() != third {
			return v, e, after, dropped
		}
	}
	return w.send3(ctx, lines)
}

// cut returns as many of the first lines as may be sent in one request, and whether it was their size that set the limit.
func (w *writer) cut(lines []byte) (head []byte, bySize bool) {
	head, _ = split(lines, w.conf.BatchPoints)
	if w.size.limit == 0 || len(head) <= w.size.limit {
		return head, false
	}
	_, rest := nextLine(head)
	for len(rest) > 0 {
		_, after := nextLine(rest)
		if len(head)-len(after) > w.size.limit {
			break
		}
		rest = after
	}
	return head[:len(head)-len(rest)], true
}

// size is the knowledge about the bytes that one request may have. Only 413 shows it: a proxy before the store may have a limit of
// its own.
type size struct {
	limit   int  // 0 before the first request was too large
	largest int  // that passed since then
	good    int  // requests of about this size that passed since it was changed
	any     bool // whether any has ever passed
}

// growAfter is the number of requests after which a limit is tried again that is an eighth higher.
const growAfter = 32

func (s *size) tooLarge(n int) {
	limit := max(n/2, 1)
	if s.largest > limit && s.largest < n {
		limit = s.largest
	}
	*s = size{limit: limit, any: s.any}
}

func (s *size) passed(n int, cut bool) {
	s.any = true
	s.largest = max(s.largest, n)
	if !cut {
		return
	}
	if s.good++; s.good >= growAfter {
		s.limit += s.limit/8 + 1
		s.good = 0
	}
}

// refusals collects refused points by reason.
type refusals struct {
	points int
	groups []sink.Refusal
}

func (r *refusals) add(lines []byte, n int, e *Error) {
	r.points += n
	reason := e.Error()
	at := slices.IndexFunc(r.groups, func(g sink.Refusal) bool { return g.Reason == reason })
	if at < 0 {
		at = len(r.groups)
		r.groups = append(r.groups, sink.Refusal{Reason: reason})
	}
	g := &r.groups[at]
	g.Payload = append(g.Payload, lines...)
	g.Points += uint64(n)
	for len(lines) > 0 {
		var line []byte
		line, lines = nextLine(lines)
		g.Series = sink.AddSeries(g.Series, measurementOf(line), 1)
	}
}

func (r *refusals) err() error {
	if r.points == 0 {
		return nil
	}
	return &sink.PermanentError{Err: fmt.Errorf("%d points refused, first: %s", r.points, r.groups[0].Reason), Rejected: r.points, Refused: r.groups}
}

// statusNotInflux replaces a success status that no InfluxDB sends: a portal or a proxy that answers everything with a
// page. If that counted as a success, every point would be lost silently.
const statusNotInflux = 599

// maxAnswer is how much of an answer is read. An InfluxDB repeats every point that it cannot read.
const maxAnswer = 4 << 20

// guard reads every answer before the client does, for three reasons. The client reads an error of any length into
// memory. It does not parse the errors of 1.8, and fails on the form of some of 2.7's. It takes any 2xx for success.
type guard struct{ next http.RoundTripper }

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusNoContent {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Header.Del(documentHeader)
	switch {
	case condemns(resp, body):
		resp.Header.Set(documentHeader, documentPoints)
	case len(body) == maxAnswer && resp.StatusCode >= 400 && resp.StatusCode < 500 && fromInflux(resp):
		resp.Header.Set(documentHeader, documentCut)
	}
	text := messageOf(body)
	if resp.StatusCode < 300 {
		text = fmt.Sprintf("the server answered %s to a write, which is no answer of an InfluxDB: %s", resp.Status, text)
		resp.StatusCode = statusNotInflux
	}
	resp.Header.Set("Content-Type", "text/plain")
	resp.Body = io.NopCloser(strings.NewReader(text))
	return resp, nil
}

// messageOf finds the sentence in an error: "message" in 2.7, "error" in 1.8, all of it from anything else.
func messageOf(body []byte) string {
	var m struct{ Message, Error string }
	if json.Unmarshal(body, &m) != nil || m.Message == "" && m.Error == "" {
		return string(body)
	}
	return cmp.Or(m.Message, m.Error)
}
