package influx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/hopscope/hopscope/sink"
)

// Error is what the server said, or why it said nothing.
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

// Unwrap gives the cause of a missing answer.
func (e *Error) Unwrap() error { return e.Err }

const maxMessage = 500

// verdict says what an answer means for the points of its request.
type verdict uint8

const (
	stored  verdict = iota
	refused         // at least one point will never be accepted
	large           // the request as a whole is too large
	retry           // anything that may pass
	config          // only a person can mend it
)

// classify reads an error of the client. dropped is the number of refused points where the server named it: then all
// others were stored (a "partial write").
func classify(err error) (v verdict, out *Error, after time.Duration, dropped int) {
	if err == nil {
		return stored, nil, 0, 0
	}
	he, ok := errors.AsType[*influxhttp.Error](err)
	if !ok || he.StatusCode == 0 {
		return retry, &Error{Err: err}, 0, 0
	}
	message := strings.ToValidUTF8(strings.TrimSpace(he.Message), "?")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	out = &Error{Status: he.StatusCode, Message: message}
	after = retryAfter(he)
	switch he.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		if aboutRequest(he.Message) {
			return config, out, after, 0
		}
		return refused, out, after, droppedCount(he.Message)
	case http.StatusRequestEntityTooLarge:
		return large, out, after, 0
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect, statusNotInflux:
		return config, out, after, 0
	}
	return retry, out, after, 0
}

// aboutRequest tells a 400 that complains of the query string from one that complains of a point. Taking the first for
// the second would throw away good points.
func aboutRequest(message string) bool {
	if strings.Contains(message, "unable to parse") || strings.Contains(message, "partial write") {
		return false
	}
	for _, word := range []string{"orgID", "organization", "bucket", "database", "retention policy is required", "precision"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// droppedCount reads the number from "partial write: field type conflict: ... dropped=3". InfluxDB 1.8 writes its
// lines about what it could not parse in the same form, but does not count it there.
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

// maxRetryAfter bounds a server's wish: a wrong clock or digit must not silence the sink for a day.
const maxRetryAfter = 5 * time.Minute

// retryAfter reads Retry-After in seconds or, where the client does not, as a date (RFC 9110 §10.2.3), which counts
// from the server's own Date.
func retryAfter(e *influxhttp.Error) time.Duration {
	if e.RetryAfter > 0 {
		return time.Duration(min(e.RetryAfter, uint(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(e.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(e.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// retryError wraps what may pass. An ended context is returned as it is.
func retryError(ctx context.Context, v verdict, e *Error, after time.Duration) error {
	if ctx.Err() != nil && e.Status == 0 {
		return context.Cause(ctx)
	}
	return &sink.RetryError{Err: e, After: after, Config: v == config}
}
