package web

import (
	"net/http"

	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// serveDashboards answers the dashboards of the settings.
func (s *Server) serveDashboards(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, atlas.ReadDashboards(s.cfg.Dashboards, s.names()))
}

// serveReadDashboard reads a dashboard that a page brings.
func (s *Server) serveReadDashboard(w http.ResponseWriter, r *http.Request) {
	var text atlas.DashboardText
	err := access.ReadBody(w, r, &text)
	if err != nil {
		access.Finish(w, "", err)
		return
	}
	d, err := atlas.ReadDashboard(text.File)
	if refuse(w, err) {
		return
	}
	d.Resolve(s.names())
	s.answer(w, d)
}
