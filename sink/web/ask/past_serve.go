package ask

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Serve answers a request with a range of time, and reports whether it had one. send sends what answer returns; problem sends why there is
// nothing.
func (p *Past) Serve(r *http.Request, send func(v any), problem func(status int, text string), answer func(context.Context, Span) (any, error)) bool {
	t, asked, err := ParseSpan(r.URL.Query(), time.Now())
	if !asked {
		return false
	}
	if err != nil {
		problem(http.StatusBadRequest, err.Error())
		return true
	}
	if err := p.Err(); err != nil {
		problem(http.StatusNotFound, err.Error())
		return true
	}
	v, err := answer(r.Context(), t)
	switch {
	case errors.Is(err, ErrRange):
		problem(http.StatusBadRequest, err.Error())
	case err != nil:
		problem(http.StatusInternalServerError, err.Error())
	default:
		send(v)
	}
	return true
}
