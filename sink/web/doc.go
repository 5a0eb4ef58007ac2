// Package web serves the page on which people see the network, and the read-only API behind it.
//
// It is a [sink.Writer]: the points that go to the stores also come here, and the last windows of them are kept in
// memory that the configuration bounds. Nothing is read back from a store, so the page works without one. The page is
// one HTML file with one script, one style sheet and one font, all in the binary; it asks no other host for anything.
//
// # What is kept
//
// A window is known by its end, the time of its points. A batch for the newest window or a later one is always taken,
// points for a window that is still kept are added to it, and points older than the oldest kept window are counted as
// late and left out. When a table of series is full, the series that were silent longest make room; when all of them
// are in the newest window, the new one is refused and counted. Values are kept as 32-bit floats: 24 bits are more than
// the sketches behind them promise.
//
// # The API
//
//	/api/status      version, sources, settings, how much is kept, open findings
//	/api/windows     metric= since=              a value of every hop in every window: the bitmap
//	/api/hops        sort= limit= offset=        hops, the worst of the last 12 windows first
//	/api/hop         node= egress_if=            one hop over time
//	/api/flows       q= limit= offset=           flows and their paths, the busiest first
//	/api/flow        key=                        one flow over time, with its path changes
//	/api/findings    open and ended
//	/api/exporters   limit= offset=              silent ones first, then by loss
//	/api/ledger      where every report is, by sink
//	/api/events      server-sent events: finding, window, ledger; Last-Event-ID or last_event_id= resumes
//	/metrics, /healthz, /readyz                  what the collector mounts
//
// Metrics are named like the fields of the stored series "hop". Times are milliseconds since 1970, latencies
// nanoseconds, queues bytes, utilisation a ratio; a value that nobody reported is null.
//
// # Who may see it
//
// On a loopback address everybody who reaches the port, provided that the Host header is an IP address, localhost, or a
// name from the configuration: a page of another site that points its own name at 127.0.0.1 is refused (DNS
// rebinding). On any other address a token is demanded, as "Authorization: Bearer", or once through /login, which
// leaves a cookie that does not contain the token. Only /healthz and /readyz need none. Every method but GET and HEAD
// is refused, apart from POST /login.
package web
