package web

import (
	"net/http"
	"strings"

	"github.com/hopscope/hopscope/sink/web/ask"
)

// public paths need no login: the probes of an orchestrator, and what the login form is drawn with.
func public(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/login", "/app.css", "/favicon.svg", "/inter.woff2", "/oidc/login", "/oidc/callback":
		return true
	}
	return strings.HasPrefix(path, "/docs/") // the documentation of the program, which alerts point at
}

// serveLoginPage answers with the form, and why a login failed.
func (s *Server) serveLoginPage(w http.ResponseWriter, r *http.Request, status int, problem string) {
	token, openID := s.gate.Ways()
	s.assets.login(w, r, status, problem, token, openID)
}

// openFindings returns the open findings as the API answers them.
func (s *Server) openFindings() []ask.Finding {
	open, _ := s.findings.list()
	return ask.NewFindings(open, s.names())
}
