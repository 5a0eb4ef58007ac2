package web

import (
	"net/http"

	"github.com/hopscope/hopscope/ingest/peer"
)

// reserve is how many connections there can be beyond Config.MaxConnections, for probes alone.
const reserve = 16

// limit answers requests by h on the connections that have a place for them.
func (s *Server) limit(h http.Handler) http.Handler {
	return peer.LimitHTTP(h, peer.Probe, func(w http.ResponseWriter) {
		s.counters.busy.Add(1)
		problem(w, http.StatusServiceUnavailable, "too many connections: web.max_connections says how many there can be")
	})
}
