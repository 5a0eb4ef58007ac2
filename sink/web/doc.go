// Package web serves the page that shows the network, and the read-only API behind it.
//
// It is a sink: every window that goes to the stores also comes here. The last windows are kept in memory that the
// configuration bounds. Nothing is read back from a store, so the page works without one. The page is one HTML file
// with one script, one style sheet and one font, all in the binary. It requests nothing from other hosts.
//
// # What is kept
//
// Rows are kept as they come: hops, flows and exporters by their keys, values as numbers. Texts are made on request
// only, by the functions that write and read them everywhere else. The kept rows share no memory with the window that
// they came in.
//
// A window is identified by its end. The newest window or a later one is always taken, and a part of a window that is
// still kept is added to it. A window older than the oldest kept one is counted as late and left out. When a table of
// hops, flows or exporters is full, the longest silent entries are evicted. When all entries are in the newest window,
// the new one is refused and counted. Values are kept as 32-bit floats: their 24 bits are more than the sketches
// promise.
//
// A fleet has the same page. Its windows are always whole, and replace the kept window with the same end
// ([Server.ReplaceWindow]). Each comes with the list of the collectors that are missing in it.
//
// # The API
//
//	/api/status      version, sources, settings, how much is kept, open findings
//	/api/windows     metric= since=              a value of every hop in every window: the bitmap
//	/api/find        q= limit=                   nodes, interfaces, hosts, exporters, paths of probes, flows and findings, the best of each kind
//	/api/hops        q= sort= limit= offset=     hops, the worst of the last 12 windows first
//	/api/hop         node= egress_if=            one hop over time; node=7:3 names it too
//	/api/flows       q= limit= offset=           flows, their paths and what nodes saw of them by samples and flow records, the busiest first
//	/api/flow        key=                        one flow over time, with its path changes
//	/api/paths       paths that follow from digests, those that are not certain first
//	/api/probes      since=                      what probes of agents reported of hops, by probe, in the newest 8 windows
//	/api/findings    open and ended
//	/api/map         nodes and links of the map, with an ETag: of a topology, or as flows show them
//	/api/map/state   metric=                     a value of every direction of a link, and what is found and suspected where
//	/api/map/probes  limit= offset=              probes of the plan in force and the links that they cross
//	/api/exporters   q= limit= offset=           silent ones first, then by loss; and hops without a node id
//	/api/interfaces  q= limit= offset=           what interfaces count: those first that damage or discard the greatest share of packets
//	/api/probed      q= limit= offset=           paths of probes between agents: those first that lose or damage the greatest share of them
//	/api/unread      exporters whose datagrams no profile reads, with the beginning of one of them, and metrics of which nothing is counted
//	/api/sample      address=                    that beginning as a text file
//	/api/names       what nodes, interfaces and hosts are called, as an inventory in JSON
//	/api/ledger      where every report is, by sink
//	/api/fleet       limit= offset=              of a fleet: its collectors and consumers, and the windows without some
//	/api/events      server-sent events: finding, window, ledger, loop; Last-Event-ID or last_event_id= resumes
//	/metrics, /healthz, /readyz                  what the collector mounts
//
// The parameter q= keeps the rows that have each of its words in their names, numbers and addresses. A word may be a
// prefix, such as 10.1.0.0/16, which holds the addresses of a row. The search ranks what is the text before what begins
// with it.
//
// The parameters node= and key= take every text of a hop or a flow that hopscope prints. Findings have the same
// identifiers as in stores and logs. Metrics are named like the fields of the stored series "hop". Times are
// milliseconds since 1970, latencies nanoseconds, queues bytes, utilisation a ratio; a value that was not reported is
// null. Nodes are numbers; a client that shows names requests those separately. Only the sentences of findings contain
// names.
//
// # Access
//
// On a loopback address every client that reaches the port has access. The Host header must be an IP address,
// localhost, or a name from the configuration. This refuses a page of another site that points its own name at
// 127.0.0.1 (DNS rebinding). On any other address a token is required, as "Authorization: Bearer", or once through
// /login, which sets a cookie that does not contain the token. Only /healthz and /readyz need none. Every method but
// GET and HEAD is refused, apart from POST /login.
package web
