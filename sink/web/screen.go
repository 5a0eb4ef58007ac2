package web

import (
	"io"
	"net/http"

	"github.com/hopscope/hopscope/inference/names"
)

// Screened makes a handler whose answers, text or JSON, steer no terminal, as [names.ScreenJSON] does. What is packed passes as it is.
func Screened(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(screenedAnswer{w, names.ScreenJSON(w)}, r)
	})
}

type screenedAnswer struct {
	http.ResponseWriter
	body io.Writer
}

func (a screenedAnswer) Write(b []byte) (int, error) {
	if a.Header().Get("Content-Encoding") != "" {
		return a.ResponseWriter.Write(b)
	}
	return a.body.Write(b)
}
