package web

import (
	"net/http"
	"slices"

	"github.com/hopscope/hopscope/sink/web/ask"
)

// serveExplain answers the explanation of the finding that id= names: its id, or the name of its alert. Of several
// findings with the same alert, the open one is taken.
func (s *Server) serveExplain(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	open, ended := s.findings.list()
	status, coverage := s.deps.Status(), ""
	switch {
	case status.Coverage != nil:
		coverage = "In the last window: " + status.Coverage.Text() + "."
	case status.Fleet != nil:
		coverage = "How many hops were judged is known to the consumers of the fleet alone."
	}
	x := ask.Explain(slices.Concat(open, ended), id, s.names(), s.deps.Setting, coverage)
	if x == nil {
		problem(w, http.StatusNotFound, "no finding "+shorten(id)+" is kept; hopscope findings --format json lists the ids")
		return
	}
	s.answer(w, x)
}
