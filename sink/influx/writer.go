package influx

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api"

	"github.com/hopscope/hopscope/sink"
)

// Writer writes to one bucket. Encode may be called beside the writing methods, which belong to one goroutine.
type Writer struct {
	conf      Config
	token     string
	client    influxdb2.Client
	transport *http.Transport
	api       api.WriteAPIBlocking
	buf       []byte // of Write
	stats     counters
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
func New(conf Config) (*Writer, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	token, err := conf.token()
	if err != nil {
		return nil, err
	}
	transport, err := conf.transport()
	if err != nil {
		return nil, err
	}
	opt := influxdb2.DefaultOptions()
	opt.SetApplicationName("hopscope").SetUseGZip(conf.Gzip)
	opt.SetHTTPClient(&http.Client{
		Transport: guard{transport},
		Timeout:   conf.Timeout,
		// A POST that is redirected may become a GET, whose success says nothing about the points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	client := influxdb2.NewClientWithOptions(strings.TrimSuffix(conf.URL, "/"), token, opt)
	return &Writer{conf: conf, token: token, client: client, transport: transport, api: client.WriteAPIBlocking(conf.Org, conf.Bucket)}, nil
}

// Name is "influx".
func (w *Writer) Name() string { return "influx" }

// Close ends idle connections.
func (w *Writer) Close() error {
	w.client.Close()
	w.transport.CloseIdleConnections()
	return nil
}

// Stats may be called at any time.
func (w *Writer) Stats() Stats {
	s := &w.stats
	return Stats{
		Requests: s.requests.Load(), Points: s.points.Load(), Bytes: s.bytes.Load(), Refused: s.refused.Load(),
		Splits: s.splits.Load(), FieldsDropped: s.fieldsDropped.Load(), PointsDropped: s.pointsDropped.Load(),
	}
}

// Encode appends b as line protocol.
func (w *Writer) Encode(dst []byte, b *sink.Batch) []byte {
	dst, fields, points := sink.AppendPoints(dst, b.Points, AppendPoint)
	if fields|points != 0 {
		w.stats.fieldsDropped.Add(fields)
		w.stats.pointsDropped.Add(points)
	}
	return dst
}

// Write stores b.
func (w *Writer) Write(ctx context.Context, b *sink.Batch) error {
	w.buf = w.Encode(w.buf[:0], b)
	return w.WriteEncoded(ctx, w.buf)
}

// WriteEncoded stores line protocol, in requests of at most Config.BatchPoints points. It goes on behind refused
// points, and stops at the first error that may pass; everything is then to be written again.
func (w *Writer) WriteEncoded(ctx context.Context, payload []byte) error {
	var refusals refusals
	for len(payload) > 0 {
		var part []byte
		part, payload = split(payload, w.conf.BatchPoints)
		budget := w.conf.SplitRequests
		if err := w.write(ctx, part, &budget, &refusals); err != nil {
			return err
		}
	}
	w.stats.refused.Add(uint64(refusals.points))
	return refusals.err()
}

// refusals collects refused points and the first reason.
type refusals struct {
	points int
	first  error
}

func (r *refusals) add(points int, err error) {
	r.points += points
	if r.first == nil {
		r.first = err
	}
}

func (r *refusals) err() error {
	if r.points == 0 {
		return nil
	}
	return &sink.PermanentError{Err: fmt.Errorf("%d points refused, first: %w", r.points, r.first), Rejected: r.points}
}

// write sends one request and, when points of it are refused, its halves, as long as budget lasts.
func (w *Writer) write(ctx context.Context, part []byte, budget *int, refusals *refusals) error {
	n := countLines(part)
	w.stats.requests.Add(1)
	w.stats.bytes.Add(uint64(len(part)))
	v, e, after, dropped := classify(w.api.WriteRecord(ctx, string(part)))
	switch v {
	case stored:
		w.stats.points.Add(uint64(n))
		return nil
	case retry, config:
		return retryError(ctx, v, e, after)
	}
	if dropped > 0 && dropped <= n && (n == 1 || *budget < 2 || countable(part)) {
		refusals.add(dropped, e)
		w.stats.points.Add(uint64(n - dropped))
		return nil
	}
	if n == 1 || *budget < 2 {
		refusals.add(n, e)
		return nil
	}
	*budget -= 2
	w.stats.splits.Add(2)
	head, tail := split(part, n/2)
	if err := w.write(ctx, head, budget, refusals); err != nil {
		return err
	}
	return w.write(ctx, tail, budget, refusals)
}

// countable reports whether a server that refused points of part has counted all that it refused. It has not when the
// points reach several shards, which is when they have several times: the number is then that of one shard. And 1.8 does
// not count what it could not parse, which of our lines are those whose series key is too long (65535 bytes).
func countable(part []byte) bool {
	var first []byte
	for len(part) > 0 {
		var line []byte
		line, part = nextLine(part)
		line = bytes.TrimSuffix(line, []byte{'\n'})
		at := line[bytes.LastIndexByte(line, ' ')+1:]
		if first == nil {
			first = at
		}
		if len(line) > math.MaxUint16 || !bytes.Equal(first, at) {
			return false
		}
	}
	return true
}

// statusNotInflux stands for a success that no InfluxDB gives: a portal or a proxy that answers everything with a page.
// Taking it for one would lose every point in silence.
const statusNotInflux = 599

// guard reads every answer before the client does, for three reasons: the client reads an error of any length into
// memory; it does not know the form of 1.8's errors, and trips over that of some of 2.7's; and it takes any 2xx for
// success.
type guard struct{ next http.RoundTripper }

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusNoContent {
		return resp, err
	}
	const maxAnswer = 64 << 10
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if err != nil {
		return nil, err
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
