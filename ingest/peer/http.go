package peer

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// Connected reports whether a request without an answer had a connection, so that its document may be the cause.
func Connected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return !(ok && op.Op == "dial") && !WrongSecurity(err)
}

// maxRetryAfter bounds a server's wish: a wrong clock or digit must not silence a client for a day.
const maxRetryAfter = 5 * time.Minute

// RetryAfter reads Retry-After in seconds or as a date (RFC 9110 §10.2.3), which counts from the server's own Date.
func RetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if d, err := time.ParseDuration(text + "s"); err == nil && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return min(d, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
