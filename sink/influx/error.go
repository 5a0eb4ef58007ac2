package influx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// Error is the answer of the server, or the reason why there is none.
type Error struct {
	Status  int    // of HTTP; 0 when there was no answer
	Message string // the server's sentence, cut to 500 bytes
	Err     error  // why there was no answer
}

func (e *Error) Error() string {
	switch {
	case e.Status == 0:
		return fmt.Sprintf("influx: no answer: %v", e.Err)
	case e.Status == statusNotInflux:
		return "influx: " + e.Message
	case e.Message == "":
		return fmt.Sprintf("influx: %d %s", e.Status, http.StatusText(e.Status))
	default:
		return fmt.Sprintf("influx: %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
	}
}

// Unwrap returns the cause of a missing answer.
func (e *Error) Unwrap() error { return e.Err }

const maxMessage = 500

// verdict is the meaning of an answer for the points of its request.
type verdict uint8

const (
	stored  verdict = iota
	refused         // the store will never accept at least one point
	large           // the request as a whole is too large, or the answer to it
	retry           // anything that may pass
	config          // only an operator can mend it
)

// What the two servers answer to a write, as 1.8.10 and 2.7.12 were seen to do it:
//
//	                      1.8.10                                        2.7.12
//	all stored            204                                           204
//	header of every answer  X-Influxdb-Version: 1.8.10                    X-Influxdb-Version: v2.7.12
//	a point not read      400 {"error":"unable to parse '…': …"};       400 {"code":"invalid","message":"unable to parse
//	                      beside good ones, which are stored,           '…': …"}; nothing is stored
//	                      "partial write: unable to parse … dropped=0"
//	another type of field 400 {"error":"partial write: field type       422 {"code":"unprocessable entity","message":"failure
//	                      conflict: … dropped=N"}                       writing points to database: partial write: … dropped=N"}
//	outside the retention 400 "partial write: points beyond …"          422 "failure …: partial write: dropped N points outside …"
//	the query is wrong    400 or 404 {"error":…}                        400 {"code":"invalid",…} or 404 {"code":"not found",…}
//
// N counts the points of one shard where a request reaches several, and never those that could not be parsed. Version
// 1.8 also sends the message as X-Influxdb-Error, and 2.7 the code as X-Platform-Error-Code.
//
// Only such a document, about points, means that points are refused. The same status with any other body comes from
// something in between: a proxy, a load balancer, a server that requires TLS. That may pass, and the points are kept.

// classify reads an error of the client. dropped is the number of refused points if the server named it. All others
// were then stored (a "partial write").
func classify(err error) (v verdict, out *Error, after time.Duration, dropped int) {
	if err == nil {
		return stored, nil, 0, 0
	}
	he, ok := errors.AsType[*influxhttp.Error](err)
	if !ok || he.StatusCode == 0 {
		switch {
		case strings.Contains(err.Error(), "response headers exceeded"):
			// The server's list of errors is too long. With fewer points it can be read.
			return large, &Error{Err: err}, 0, 0
		case peer.WrongSecurity(err):
			return config, &Error{Err: err}, 0, 0
		}
		return retry, &Error{Err: err}, 0, 0
	}
	message := strings.ToValidUTF8(strings.TrimSpace(he.Message), "?")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	out = &Error{Status: he.StatusCode, Message: message}
	after = peer.RetryAfter(he.Header)
	switch status := he.StatusCode; {
	case he.Header.Get(documentHeader) == documentPoints:
		return refused, out, after, droppedCount(he.Message)
	case he.Header.Get(documentHeader) == documentCut:
		return large, out, after, 0
	case status == http.StatusRequestEntityTooLarge:
		return large, out, after, 0
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return retry, out, after, 0
	case status < http.StatusInternalServerError, status == http.StatusNotImplemented,
		status == http.StatusHTTPVersionNotSupported, status == statusNotInflux:
		return config, out, after, 0
	}
	return retry, out, after, 0
}

// documentHeader is the guard's classification of an answer's body. It replaces any value of the server under this
// name.
const (
	documentHeader = "X-Hopscope-Document"
	documentPoints = "points" // it is the store's own, and reports refused points
	documentCut    = "cut"    // it is longer than is read, in answer to a request that may be at fault
)

// condemns reports whether an answer is the store's own document that refuses points of the request.
func condemns(resp *http.Response, body []byte) bool {
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	var m struct{ Code, Message, Error string }
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	switch {
	case m.Code == "invalid" || m.Code == "unprocessable entity":
		return aboutPoints(m.Message)
	case m.Code == "" && fromInflux(resp):
		return aboutPoints(m.Error)
	}
	return false
}

// fromInflux reports whether an InfluxDB made the answer. Proxies add headers and seldom take any away.
func fromInflux(resp *http.Response) bool {
	return resp.Header.Get("X-Influxdb-Version") != "" || resp.Header.Get("X-Platform-Error-Code") != ""
}

// aboutPoints distinguishes a document that complains of points from one that complains of the query string, or of something unknown.
// Taking those for the first would throw away good points.
func aboutPoints(message string) bool {
	return strings.Contains(message, "unable to parse") || strings.Contains(message, "partial write")
}

// droppedCount reads the number from "partial write: field type conflict: ... dropped=3". InfluxDB 1.8 uses the same
// form for lines that it could not parse, but does not count those there.
func droppedCount(message string) int {
	at := strings.LastIndex(message, "dropped=")
	if at < 0 || !strings.Contains(message, "partial write") || strings.Contains(message, "unable to parse") {
		return 0
	}
	rest := message[at+len("dropped="):]
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return n
}

// retryError wraps what may pass. An ended context is returned as it is.
func retryError(ctx context.Context, v verdict, e *Error, after time.Duration) error {
	if ctx.Err() != nil && e.Status == 0 {
		return context.Cause(ctx)
	}
	doubt := e.Status >= http.StatusInternalServerError || e.Status == 0 && peer.Connected(e.Err)
	return &sink.RetryError{Err: e, After: after, Config: v == config, Doubt: v == retry && doubt}
}
