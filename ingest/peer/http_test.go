package peer

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	const date = "Sun, 22 Nov 2026 16:00:00 GMT"
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-7": 0, "1e9": 0, "1m": 0, "99999999999999999999": 0, "86400": maxRetryAfter, "soon": 0,
		"Sun, 22 Nov 2026 16:00:09 GMT": 9 * time.Second, "Sun, 22 Nov 2026 15:00:00 GMT": 0, "Mon, 23 Nov 2026 15:00:00 GMT": maxRetryAfter,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}, "Date": {date}}); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", text, got, want)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After": {date}}); got != 0 {
		t.Errorf("without the server's date: %v", got)
	}
}
