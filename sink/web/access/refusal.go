package access

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference/names"
)

// Refusal is the answer to a request that is not allowed.
type Refusal struct {
	Status int
	Text   string        // what is wrong, and what to do
	After  time.Duration // how long to wait, or 0
}

func (r *Refusal) Error() string { return r.Text }

// Problem answers with the reason for which a request cannot be answered.
func Problem(w http.ResponseWriter, status int, text string) {
	data, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		data = []byte(`{"error":"unknown"}`)
	}
	WriteJSON(w, status, names.EscapeJSON(data), "no-store")
}

// WriteJSON answers with JSON. keep is the Cache-Control of the answer.
func WriteJSON(w http.ResponseWriter, status int, data []byte, keep string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", keep)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may be gone
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		Problem(w, http.StatusInternalServerError, "the answer could not be written")
		return
	}
	WriteJSON(w, http.StatusOK, names.EscapeJSON(data), "no-store")
}

// refuse answers with err, by its status if it is a [Refusal], and reports whether there is one.
func refuse(w http.ResponseWriter, err error) bool {
	if err == nil {
		return false
	}
	status := http.StatusBadRequest
	if r, ok := err.(*Refusal); ok {
		status = r.Status
		if r.After > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((r.After+time.Second-1)/time.Second)))
		}
	}
	Problem(w, status, err.Error())
	return true
}

// printable reports whether a text is UTF-8 of printable characters.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cut shortens a text to a number of bytes, between characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
