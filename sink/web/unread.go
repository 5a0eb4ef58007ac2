package web

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/hopscope/hopscope/sink/web/ask"
)

// Unread is one exporter whose datagrams no profile reads, or a metric that is not counted at all.
type Unread struct {
	Address string // of the exporter, or the name of the metric
	Count   uint64 // datagrams, frames or data points that were not read
	AtLeast bool   // there may have been more
	Text    string // what is known of them, and what to do, in a sentence
	Sample  []byte // the beginning of one of them, without what users sent; may be empty
}

// maxUnread bounds the exporters of an answer.
const maxUnread = 256

func (s *Server) unread() []Unread {
	if s.deps.Unread == nil {
		return nil
	}
	return s.deps.Unread()
}

// serveUnread lists exporters whose datagrams no profile reads; total counts those that are left out, too.
func (s *Server) serveUnread(w http.ResponseWriter, _ *http.Request) {
	all := s.unread()
	rows := make([]ask.UnreadRow, 0, min(len(all), maxUnread))
	for i := range all[:min(len(all), maxUnread)] {
		u := &all[i]
		rows = append(rows, ask.UnreadRow{Address: u.Address, Count: u.Count, AtLeast: u.AtLeast, Text: u.Text, Sample: hex.EncodeToString(u.Sample)})
	}
	s.answer(w, ask.UnreadList{Total: len(all), Exporters: rows})
}

// serveSample answers with the sample of one exporter as a text file, for its reader.
func (s *Server) serveSample(w http.ResponseWriter, r *http.Request) {
	address := r.URL.Query().Get("address")
	for _, u := range s.unread() {
		if u.Address != address || len(u.Sample) == 0 {
			continue
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "hopscope-sample-"+fileName(address)+".txt"))
		fmt.Fprintf(w, "# hopscope %s: the beginning of a datagram that no profile reads, without what users sent\n# exporter %s, %d datagrams\n# %s\n%s",
			s.deps.Status().Version, u.Address, u.Count, strings.Join(strings.Fields(u.Text), " "), hex.Dump(u.Sample))
		return
	}
	problem(w, http.StatusNotFound, "no sample of an exporter with that address")
}

// fileName is an address as a part of the name of a file.
func fileName(address string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '.' {
			return r
		}
		return '-'
	}, address)
}
