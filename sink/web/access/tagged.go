package access

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// Tagged makes a handler whose answers by [WriteJSON] have an ETag, a digest of their bytes. A request that names it in
// If-None-Match gets 304 in place of them (RFC 9110, section 13.1.2). Streams, refusals and answers with a tag of their
// own pass as they are.
func Tagged(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h(w, r)
			return
		}
		a := &taggedAnswer{ResponseWriter: w, request: r}
		h(a, r)
		a.begin()
	}
}

// taggedAnswer is an answer whose status waits for its bytes.
type taggedAnswer struct {
	http.ResponseWriter
	request *http.Request
	waits   bool // the status is 200 and was not sent
	length  int
}

// Unwrap is for [http.ResponseController].
func (a *taggedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *taggedAnswer) WriteHeader(status int) {
	h := a.Header()
	length, err := strconv.Atoi(h.Get("Content-Length"))
	if status == http.StatusOK && err == nil && h.Get("ETag") == "" {
		a.waits, a.length = true, length
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *taggedAnswer) Write(b []byte) (int, error) {
	if a.waits && len(b) == a.length { // it is all of the answer
		sum := sha256.Sum256(b)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		a.Header().Set("ETag", tag)
		if Knows(a.request, tag) {
			a.waits = false
			a.Header().Del("Content-Length")
			a.Header().Del("Content-Type")
			a.ResponseWriter.WriteHeader(http.StatusNotModified)
			return len(b), nil
		}
	}
	a.begin()
	return a.ResponseWriter.Write(b)
}

// begin sends the status that waits.
func (a *taggedAnswer) begin() {
	if a.waits {
		a.waits = false
		a.ResponseWriter.WriteHeader(http.StatusOK)
	}
}

// Knows reports whether a request names the tag of an answer in If-None-Match: its client has the answer.
func Knows(r *http.Request, tag string) bool {
	for _, list := range r.Header.Values("If-None-Match") {
		for t := range strings.SplitSeq(list, ",") {
			if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
				return true
			}
		}
	}
	return false
}
