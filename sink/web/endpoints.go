package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// endpoint is a part of the API: what it is asked, and what it answers. openapi.json and docs/api.md are written from
// the list of all.
type endpoint struct {
	path   string // behind /api/ and /api/v1/
	about  string
	role   access.Role // that it needs
	params []param
	change bool   // it changes something, and takes POST in place of GET
	body   any    // a value of the type that a change takes as JSON; nil for none
	answer any    // a value of the type that is answered as JSON; nil for another form
	media  string // of an answer that is no JSON
	serve  func(*Server, http.ResponseWriter, *http.Request)
}

// param is a parameter of a query.
type param struct {
	name, about string
	kind        string // integer, or string where it is empty
	required    bool
	least, most int64    // of an integer
	enum        []string // the texts that are allowed; any where it is empty
}

// The parameters that several endpoints have.
var (
	queryParam  = param{name: "q", about: "rows that have each word of it in names, numbers and addresses; a word may be a prefix such as 10.1.0.0/16"}
	orderParam  = param{name: "order", about: "direction of sort, with absent values last; without it numbers descend, and names ascend", enum: ask.Orders}
	limitParam  = param{name: "limit", about: "rows of the answer, 20 without it", kind: "integer", least: 1, most: 200}
	offsetParam = param{name: "offset", about: "rows left out before the first, 0 without it", kind: "integer", most: 1 << 31}
	fromParam   = param{name: "from", about: "begin of a range of the history on disk", kind: "integer", most: 1 << 42}
	toParam     = param{name: "to", about: "end of the range, now without it", kind: "integer", most: 1 << 42}
	backParam   = param{name: "compare", about: "milliseconds from an earlier range to the range: rows get changes, a row the value less the earlier one, and columns with _change sort by them", kind: "integer", most: 1 << 42}
	sinceParam  = param{name: "since", about: "windows that end later", kind: "integer", least: -1, most: 1<<63 - 1}
)

// endpoints lists the API.
var endpoints = []endpoint{
	{path: "status", about: "version, sources, settings, what is kept and judged, open findings", role: access.Viewer, answer: statusAnswer{}, serve: (*Server).serveStatus},
	{path: "find", about: "best matches among nodes, interfaces, hosts, exporters, paths of probes, flows and findings", role: access.Viewer, answer: ask.FoundList{}, serve: (*Server).serveFind,
		params: []param{{name: "q", about: "a part of a name, a number or an address, or a prefix"}, {name: "limit", about: "hits of a kind, 5 without it", kind: "integer", least: 1, most: 50}}},
	{path: "windows", about: "one value of every hop in every window, oldest first", role: access.Viewer, answer: ask.Matrix{}, serve: (*Server).serveWindows,
		params: []param{{name: "metric", about: "the value, latency_p99 without it", enum: metricNames[:]}, sinceParam, fromParam, toParam}},
	{path: "hops", about: "hops, the worst of the last 12 windows first", role: access.Viewer, answer: ask.HopList{}, serve: (*Server).serveHops,
		params: []param{queryParam, {name: "sort", about: "order, latency_p99 without it", enum: append(append([]string{"node"}, metricNames[:]...), ask.ColumnNames(ask.HopColumns)[numMetrics:]...)}, orderParam, limitParam, offsetParam, fromParam, toParam, backParam}},
	{path: "hop", about: "one hop over time", role: access.Viewer, answer: ask.HopAnswer{}, serve: (*Server).serveHop,
		params: []param{{name: "node", about: "a node, or a hop such as 7:3", required: true}, {name: "egress_if", about: "the interface, if node is a node alone"}, fromParam, toParam}},
	{path: "flows", about: "flows with their paths, samples and flow records, the busiest first", role: access.Viewer, answer: flowList{}, serve: (*Server).serveFlows,
		params: []param{queryParam, sortParam(ask.FlowColumns), orderParam, limitParam, offsetParam, fromParam, toParam}},
	{path: "flow", about: "one flow over time, with its path changes", role: access.Viewer, answer: flowAnswer{}, serve: (*Server).serveFlow,
		params: []param{{name: "key", about: `a flow, such as "10.0.0.1:80 > 10.0.0.2:5001 tcp"`, required: true}}},
	{path: "paths", about: "paths from digests, uncertain ones first", role: access.Viewer, answer: ask.PathList{}, serve: (*Server).servePaths},
	{path: "probes", about: "hops by probe of agents, in the newest 8 windows", role: access.Viewer, answer: ask.ProbeSpans{}, serve: (*Server).serveProbes, params: []param{sinceParam}},
	{path: "findings", about: "findings, open and ended", role: access.Viewer, answer: findingList{}, serve: (*Server).serveFindings, params: []param{fromParam, toParam}},
	{path: "explain", about: "a finding with symptoms, documentation of its kind, settings in force, what was not judged, and where to look next", role: access.Viewer, answer: ask.Explanation{}, serve: (*Server).serveExplain,
		params: []param{{name: "id", about: "the finding's id, or the name of its alert", required: true}}},
	{path: "map", about: "nodes and links of the map, with an ETag: of a topology, or as flows show them", role: access.Viewer, answer: atlas.Document{}, serve: (*Server).serveMap},
	{path: "map/state", about: "a value of every direction of a link, with findings and suspects", role: access.Viewer, answer: ask.MapState{}, serve: (*Server).serveMapState,
		params: []param{{name: "metric", about: "the value, latency_p99 without it", enum: metricNames[:]}, fromParam, toParam, backParam}},
	{path: "map/probes", about: "probes of the plan in force and the links that they cross; 404 without a control of probes", role: access.Viewer, answer: mapProbeList{}, serve: (*Server).serveMapProbes,
		params: []param{{name: "limit", about: "probes of the answer, 2000 without it", kind: "integer", least: 1, most: maxMapProbes}, offsetParam}},
	{path: "film", about: "one value of every direction of a link in the latest windows, for a picture", role: access.Viewer, answer: ask.Film{}, serve: (*Server).serveFilm,
		params: []param{{name: "metric", about: "the value, queue_p99 without it", enum: metricNames[:]}, {name: "limit", about: "windows of the answer, 60 without it", kind: "integer", least: 1, most: maxFilm}, sinceParam}},
	{path: "exporters", about: "exporters, silent ones first, then by loss; and hops without a node id", role: access.Viewer, answer: ask.ExporterList{}, serve: (*Server).serveExporters,
		params: []param{queryParam, sortParam(ask.ExporterColumns), orderParam, limitParam, offsetParam, fromParam, toParam, backParam}},
	{path: "interfaces", about: "counters of interfaces, the greatest share of damaged or discarded packets first", role: access.Viewer, answer: interfaceList{}, serve: (*Server).serveInterfaces,
		params: []param{queryParam, sortParam(ask.InterfaceColumns), orderParam, limitParam, offsetParam, fromParam, toParam, backParam}},
	{path: "probed", about: "paths of probes between agents, the greatest share of lost or damaged probes first", role: access.Viewer, answer: probedList{}, serve: (*Server).serveProbed,
		params: []param{queryParam, sortParam(ask.ProbedColumns), orderParam, limitParam, offsetParam, fromParam, toParam, backParam}},
	{path: "ledger", about: "where every report is, by sink", role: access.Viewer, answer: ledgerEvent{}, serve: (*Server).serveLedger, params: []param{fromParam, toParam}},
	{path: "unread", about: "exporters whose datagrams no profile reads, with the beginning of one, and uncounted metrics", role: access.Viewer, answer: ask.UnreadList{}, serve: (*Server).serveUnread},
	{path: "sample", about: "the beginning of a datagram that no profile reads, as a text file", role: access.Viewer, media: "text/plain", serve: (*Server).serveSample,
		params: []param{{name: "address", about: "the exporter's address", required: true}}},
	{path: "names", about: "names of nodes, interfaces and hosts, as an inventory in JSON", role: access.Viewer, answer: names.Document{}, serve: (*Server).serveNames},
	{path: "fleet", about: "collectors and consumers of a fleet, and the windows without some; 404 on the page of one collector", role: access.Viewer, answer: fleetAnswer{}, serve: (*Server).serveFleet,
		params: []param{limitParam, offsetParam}},
	{path: "events", about: "server-sent events finding, window, ledger, loop and ping; the header Last-Event-ID resumes", role: access.Viewer, media: "text/event-stream", serve: (*Server).serveEvents,
		params: []param{{name: "last_event_id", about: "resumes, for clients that cannot send the header"}}},

	{path: "whoami", about: "the client, its role, and what a browser sends with changes", role: access.Viewer, answer: access.Whoami{}, serve: atGate((*access.Gate).ServeWhoami)},
	{path: "logout", about: "ends the session of the browser", role: access.Viewer, change: true, answer: access.Done{}, serve: atGate((*access.Gate).ServeLogout)},
	{path: "attention", about: "open findings that were acknowledged, muted or commented on", role: access.Viewer, answer: ask.AttentionList{}, serve: atDesk((*ask.Desk).ServeAttention)},
	{path: "findings/ack", about: "acknowledges a finding, whose alert is not repeated any more", role: access.Operator, change: true, body: ask.Acknowledge{}, answer: access.Done{}, serve: atDesk((*ask.Desk).ServeAcknowledge)},
	{path: "findings/mute", about: "mutes alerts of an element, of a kind, or of a kind at an element", role: access.Operator, change: true, body: ask.Mute{}, answer: access.Done{}, serve: atDesk((*ask.Desk).ServeMute)},
	{path: "findings/unmute", about: "takes back the mute of the same element and kind", role: access.Operator, change: true, body: ask.Mute{}, answer: access.Done{}, serve: atDesk((*ask.Desk).ServeUnmute)},
	{path: "findings/comment", about: "comments on a finding", role: access.Operator, change: true, body: ask.Comment{}, answer: access.Done{}, serve: atDesk((*ask.Desk).ServeComment)},
	{path: "control", about: "commands the control of probes", role: access.Operator, change: true, body: ask.Order{}, answer: access.Done{}, serve: atDesk((*ask.Desk).ServeCommand)},
	{path: "control/status", about: "state of the control of probes, and its possible commands; 404 without one", role: access.Viewer, answer: ask.ControlState{}, serve: atDesk((*ask.Desk).ServeControl)},
	{path: "dashboards", about: "dashboards of the settings, whose files are read anew", role: access.Viewer, answer: atlas.DashboardList{}, serve: (*Server).serveDashboards},
	{path: "dashboards/read", about: "reads the text of a dashboard, and keeps nothing", role: access.Viewer, change: true, body: atlas.DashboardText{}, answer: atlas.Dashboard{}, serve: (*Server).serveReadDashboard},
	{path: "systems", about: "plans of INT-path, INT-Probe, INTO, PINT, FANT and RFT: what was decided, what is installed, what it brought", role: access.Viewer, answer: ask.SystemList{}, serve: atDesk((*ask.Desk).ServeSystems)},
	{path: "changes", about: "the newest changes, with their users, times and addresses", role: access.Operator, answer: access.ChangeList{}, serve: atGate((*access.Gate).ServeChanges),
		params: []param{{name: "limit", about: "changes of the answer, 50 without it", kind: "integer", least: 1, most: 1000}, {name: "before", about: "changes with a lower number", kind: "integer", least: 1, most: 1<<63 - 1},
			{name: "action", about: "an action such as findings/ack, or a group such as findings"}, {name: "target", about: "the target, such as the name of an alert"}}},
	{path: "tokens", about: "tokens by role, without their secrets", role: access.Admin, answer: access.TokenList{}, serve: atGate((*access.Gate).ServeTokens)},
	{path: "tokens/create", about: "makes a token, and answers its secret this once", role: access.Admin, change: true, body: access.NewToken{}, answer: access.MadeToken{}, serve: atGate((*access.Gate).ServeNewToken)},
	{path: "tokens/revoke", about: "revokes a token, and ends the sessions that began with it", role: access.Admin, change: true, body: access.Named{}, answer: access.Done{}, serve: atGate((*access.Gate).ServeRevoke)},
	{path: "sessions", about: "open sessions of browsers", role: access.Admin, answer: access.SessionList{}, serve: atGate((*access.Gate).ServeSessions)},
	{path: "sessions/end", about: "ends a session", role: access.Admin, change: true, body: access.Named{}, answer: access.Done{}, serve: atGate((*access.Gate).ServeEnd)},
}

// sortParam is the parameter of a list with columns.
func sortParam[R any](columns []ask.Column[R]) param {
	return param{name: "sort", about: "column of another order", enum: ask.ColumnNames(columns)}
}

// atGate and atDesk serve an endpoint that the gate or the desk of a server answers.
func atGate(f func(*access.Gate, http.ResponseWriter, *http.Request)) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { f(s.gate, w, r) }
}

func atDesk(f func(*ask.Desk, http.ResponseWriter, *http.Request)) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { f(&s.desk, w, r) }
}

// posts reports whether a path is that of a change.
func posts(path string) bool {
	rest, ok := strings.CutPrefix(path, "/api/")
	rest = strings.TrimPrefix(rest, "v1/")
	return ok && slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.change && e.path == rest })
}

// api mounts the API, below /api/v1/ and, for the newest version, which is the same, below /api/.
func (s *Server) api(mux *http.ServeMux) {
	for i := range endpoints {
		e := &endpoints[i]
		h := s.gate.Require(e.role, e.change, access.Tagged(func(w http.ResponseWriter, r *http.Request) { e.serve(s, w, r) }))
		mux.HandleFunc("/api/"+e.path, h)
		mux.HandleFunc("/api/v1/"+e.path, h)
	}
	mux.HandleFunc("/api/openapi.json", serveOpenAPI)
	mux.HandleFunc("/api/docs", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.cfg.BasePath+"/docs/api", http.StatusFound)
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "there is no "+shorten(strings.TrimPrefix(r.URL.Path, "/api/"))+" in the API: /api/docs lists what there is")
	})
}
